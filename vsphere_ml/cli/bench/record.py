"""The records a sub-command is given."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Records = Annotated[list[Path], typer.Argument(metavar="RECORD...", help="Folders or documents `vsml bench` wrote.")]
First = Annotated[Path, typer.Argument(metavar="A", help="The record to compare with.")]
Second = Annotated[Path, typer.Argument(metavar="B", help="The record that may be faster or slower.")]
