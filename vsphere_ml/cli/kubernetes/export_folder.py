"""The folder of an export: made where it is missing, and nobody else's file in it is written over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.cli.bench.files import text
from vsphere_ml.core.errors import ConfigError
from vsphere_ml.kubernetes.export.documents import MADE_BY

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from vsphere_ml.kubernetes.export.documents import ExportedFile


def prepare_folder(folder: Path, files: Sequence[ExportedFile]) -> None:
    """Make the folder; ConfigError `config.exists` when a file of these names is there that no export made."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"{folder} cannot be made: {error.strerror}",
            code="file.unwritable",
            target=str(folder),
            hint="name a folder that you may write to",
        ) from error
    for each in files:
        if (folder / each.name).exists() and MADE_BY not in text(folder / each.name):
            raise ConfigError(
                f"{folder / each.name} is there already, and not of an export",
                code="config.exists",
                target=str(folder / each.name),
                hint="name another folder with --into",
            )
