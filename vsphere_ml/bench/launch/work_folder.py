"""A folder of the user's as an archive, and what comes back of it. Links that lead out of it are not followed."""

from __future__ import annotations

import sys
import zlib
from typing import TYPE_CHECKING

from vsphere_ml.core.errors import BenchError, ConfigError

if sys.version_info >= (3, 12):
    import tarfile
else:  # Python 3.11 has filters from 3.11.4 on; Debian 12 ships 3.11.2
    from backports import tarfile

if TYPE_CHECKING:
    from pathlib import Path

LEFT_OUT = frozenset({".git", "__pycache__"})
# What tarfile lets through of a damaged archive: a link to nothing is a KeyError, a name with a NUL a ValueError.
_UNREADABLE = (tarfile.TarError, OSError, EOFError, zlib.error, KeyError, ValueError)


def pack(folder: Path, to: Path, name: str = ".") -> None:
    """Write all that is in the folder into an archive, where it has this name.

    ConfigError `job.folder` when it cannot be read.
    """
    if not folder.is_dir():
        raise _folder_error(folder, "it is no folder")
    try:
        with tarfile.open(to, "w:gz", compresslevel=1) as archive:
            archive.add(folder, name, filter=_choose_to_send)
    except OSError as error:
        raise _folder_error(folder, error.strerror or str(error)) from error


def unpack(archive: Path, to: Path) -> tuple[str, ...]:
    """Put an archive's files into a folder and return their names; what would lead out of it is left out.

    BenchError `job.bad-archive` when it is none.
    """
    names = []

    def choose(entry: tarfile.TarInfo, path: str) -> tarfile.TarInfo | None:
        try:
            chosen = tarfile.data_filter(entry, path)
        except tarfile.FilterError:
            return None
        names.append(chosen.name)
        return chosen

    try:
        with tarfile.open(archive) as opened:
            opened.extractall(to, filter=choose)  # noqa: S202 - `choose` leaves out what leads elsewhere
    except _UNREADABLE as error:
        raise BenchError(
            f"what came from {to.name} cannot be put into {to}: {error}", code="job.bad-archive", target=to.name
        ) from error
    return tuple(sorted(names))


def _choose_to_send(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if entry.name.rpartition("/")[2] in LEFT_OUT else entry


def _folder_error(folder: Path, why: str) -> ConfigError:
    return ConfigError(f"cannot copy {folder}: {why}", code="job.folder", target=str(folder), hint="--folder DIR")
