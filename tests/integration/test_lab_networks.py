"""Labs with guests that are started at the same moment have networks of their own."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from tests.integration import guests
from vsphere_ml.lab.guests import hub

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.lab, guests.needed]
LABS = 3


def homes(folder: Path) -> list[Path]:
    """Return guests' folders that all begin to look for a network at the same place."""
    by_begin: dict[int, list[Path]] = {}
    for number in range(LABS * hub.COUNT):
        home = folder / f"lab-{number}" / "guests"
        found = by_begin.setdefault(hub.begin(home), [])
        found.append(home)
        if len(found) == LABS:
            return found
    raise AssertionError


@contextmanager
def lifeline() -> Iterator[int]:
    """Yield what a hub reads from, which ends with the test."""
    read, write = os.pipe()
    try:
        yield read
    finally:
        os.close(write)
        os.close(read)


def test_labs_that_start_at_once_do_not_take_the_same_network(tmp_path: Path) -> None:
    folders = homes(tmp_path)
    with lifeline() as pipe, ThreadPoolExecutor(LABS) as pool:
        try:
            started = list(pool.map(lambda home: hub.start(home, pipe), folders))
            assert len({each.network for each in started}) == LABS
        finally:
            for home in folders:
                hub.end(home)
