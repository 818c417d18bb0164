"""`vsml bench selftest`: its own checks hold, and so does what is computed once more from its record."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.e2e import trained
from tests.e2e.conftest import Shell, clean_environment
from tests.e2e.measured import bench
from vsphere_ml.lab import mpich

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = trained.on_guests()
# 1448 of each 1514 bytes that the token bucket counts are TCP's payload.
PAYLOAD = 1448 / 1514


@pytest.mark.alone  # ranks over MPICH never sleep
@pytest.mark.parametrize(("rate", "launches"), [(50, 1), pytest.param(1000, 2, marks=pytest.mark.long)])
def test_all_reduce_keeps_the_bound_and_comes_near_it_on_two_three_and_four_guests(
    rate: int, launches: int, tmp_path: Path
) -> None:
    mpich.make_mpich()
    how = ("--rate", f"{rate}mbit", "--launches", str(launches))
    ended = bench(Shell(tmp_path, clean_environment(tmp_path)), "selftest", *how, "--results", "record")
    assert ended.status == 0, ended.out + ended.err
    assert all(check["severity"] == "ok" for check in ended.document["data"]["checks"])
    # Computed once more from the record, without anything of vsml.
    best: dict[tuple[int, int], float] = {}
    for file in (tmp_path / "record").glob("*.json"):
        run = json.loads(file.read_text())
        ranks = run["configuration"]["ranks"]
        for point in run["sweep"]:
            bound = 2 * (ranks - 1) / ranks * point["size_bytes"] / (rate * 1e6 / 8 * PAYLOAD)
            assert min(point["time_s"]) >= 0.99 * bound
            at = (ranks, point["size_bytes"])
            best[at] = max(bound / min(point["time_s"]), best.get(at, 0.0))
    assert sorted(best) == [(ranks, size << 20) for ranks in (2, 3, 4) for size in (4, 8)]
    assert min(best.values()) >= 0.85
    bus = [best[ranks, 8 << 20] for ranks in (2, 3, 4)]
    assert min(bus) > 0.9 * max(bus)
