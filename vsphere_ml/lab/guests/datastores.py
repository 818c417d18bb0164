"""Lays the stand-ins for drivers on datastores, where a site's administrators keep what is not for the public."""

from __future__ import annotations

import shutil
import tomllib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_DRIVERS = ("nvidia-linux-grid-*",)


def lay(topology: Path, repository: Path, datastores: Path) -> None:
    """Copy the stand-ins that are no public downloads into the folder that each datastore of the topology names."""
    for store in tomllib.loads(topology.read_text()).get("datastore", []):
        if not (folder := str(store.get("stand_ins", ""))):
            continue
        at = datastores / str(store["name"]) / folder
        at.mkdir(parents=True, exist_ok=True)
        for file in _drivers(repository):
            shutil.copy(file, at)


def _drivers(repository: Path) -> Iterator[Path]:
    for pattern in _DRIVERS:
        yield from sorted(repository.glob(pattern))
