"""The folder that a command writes: made where it is missing, and nobody else's file in it is written over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.cli.bench.files import text
from vsphere_ml.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


def prepare_folder(folder: Path, names: Iterable[str], made_by: str) -> None:
    """Make the folder; ConfigError `config.exists` when a file of these names is there without this mark of ours."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"{folder} cannot be made: {error.strerror}",
            code="file.unwritable",
            target=str(folder),
            hint="name a folder that you may write to",
        ) from error
    for name in names:
        if (folder / name).exists() and made_by not in text(folder / name):
            raise ConfigError(
                f"{folder / name} is there already, and not made by this command",
                code="config.exists",
                target=str(folder / name),
                hint="name another folder with --into",
            )
