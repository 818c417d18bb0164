"""An error as a person reads it: what failed, every detail, and what to type next. No word of it is broken."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.cli.views.layout.hints import hint_line, hint_pieces
from vsphere_ml.cli.views.layout.text import line
from vsphere_ml.cli.views.layout.text import lines as joined
from vsphere_ml.core.errors import ConfigError
from vsphere_ml.core.hints import Hint

if TYPE_CHECKING:
    from rich.text import Text

    from vsphere_ml.core.errors import VsmlError


def text(error: VsmlError, *, code: bool = False) -> Text:
    """Return the error in full; with `code` also what scripts know it by."""
    lines = [line(("error: ", "bold red"), error.message)]
    lines += _details(error)
    if code:
        lines.append(line(("code: ", "dim"), error.code))
    if error.hint:
        lines.append(hint_line(error.hint))
    made = joined(*lines)
    made.overflow = "ignore"
    return made


def _details(error: VsmlError) -> list[Text]:
    if not (isinstance(error, ConfigError) and error.problems):
        return [line("  ", *(hint_pieces(each) if isinstance(each, Hint) else [each])) for each in error.details]
    lines = []
    for problem in error.problems:
        lines.append(line("  ", str(problem)))
        if problem.hint:
            lines.append(hint_line(problem.hint, "    ", style="cyan"))
    return lines
