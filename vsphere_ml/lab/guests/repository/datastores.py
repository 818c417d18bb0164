"""Lays the stand-ins for drivers on datastores, where a site's administrators keep what is not for the public."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from vsphere_ml.lab import topology as topologies

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_DRIVERS = ("nvidia-linux-grid-*",)


def lay(topology: Path, repository: Path, datastores: Path) -> None:
    """Copy the stand-ins that are no public downloads into the folder that each datastore of the topology names."""
    for store in topologies.tables(topologies.read(topology), "datastore"):
        if not (folder := str(store.get("stand_ins", ""))):
            continue
        at = datastores / str(store["name"]) / folder
        at.mkdir(parents=True, exist_ok=True)
        for file in _drivers(repository):
            shutil.copy(file, at)


def _drivers(repository: Path) -> Iterator[Path]:
    for pattern in _DRIVERS:
        yield from sorted(repository.glob(pattern))
