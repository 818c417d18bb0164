"""What nccl-tests itself printed: over stubs of CUDA and NCCL its forms are real, and its times mean nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from vsphere_ml.bench.imports import nccl_tests as imports
from vsphere_ml.bench.imports.parsed import ImportOptions
from vsphere_ml.bench.probe import nccl_tests
from vsphere_ml.bench.proof import channels

RECORDED = Path(__file__).parents[3] / "cases" / "nvidia"
MIB = 1 << 20


def recorded(name: str) -> str:
    return (RECORDED / name).read_text(encoding="utf-8")


def test_its_help_tells_what_the_build_can_do() -> None:
    tests = nccl_tests.parse_probe(f"/opt/all_reduce_perf\nlibmpi.so.12\n{recorded('all_reduce_perf-help.txt')}")
    assert tests is not None
    assert tests.over_mpi
    assert tests.options == {"average", "output_file", "per_iter_timing"}


@pytest.mark.parametrize(
    ("log", "file"),
    [
        ("all_reduce_perf-over-mpi.txt", ""),
        ("all_reduce_perf-over-mpi-without-iterations.txt", ""),
        ("all_reduce_perf-over-mpi.txt", "all_reduce_perf-over-mpi.json"),
    ],
)
def test_table_and_file_of_a_job_of_two_ranks_are_read(log: str, file: str) -> None:
    parsed = nccl_tests.parse_result(recorded(log), recorded(file) if file else "", 2)
    assert [point.size_bytes for point in parsed.sweep] == [MIB, 2 * MIB, 4 * MIB]
    assert [(each.rank, each.hostname, each.index) for each in parsed.devices] == [(0, "node-1", 0), (1, "node-1", 1)]
    assert (parsed.versions, parsed.wrong) == ({"nccl": "2.28.9"}, ())
    assert "hunter2" not in repr(parsed)


def test_what_two_nodes_with_an_h100_printed_is_read_and_shows_their_path() -> None:
    log = recorded("h100/all_reduce_perf-two-nodes.log")
    parsed = nccl_tests.parse_result(log, "", 2)
    assert [point.size_bytes for point in parsed.sweep] == [1 << power for power in range(16, 25)]
    assert parsed.sweep[-1].time_s == pytest.approx((0.145409,))
    assert [(each.rank, each.hostname, each.name) for each in parsed.devices] == [
        (0, "node-1", "NVIDIA H100 80GB HBM3"),
        (1, "node-2", "NVIDIA H100 80GB HBM3"),
    ]
    assert (parsed.wrong, parsed.versions["nccl"]) == ((), "2.28.3")  # the library's, and not the headers' 2.28.9


@pytest.mark.parametrize("log", ["all_reduce_perf-two-nodes.log", "torchrun-two-nodes.log"])
def test_every_channel_that_nccl_logged_on_an_h100_is_read(log: str) -> None:
    went = channels.of_nccl(recorded(f"h100/{log}"))
    assert {each.carrier for each in went} == {"NET/Socket"}
    assert sorted((each.host, each.channel, each.sender, each.receiver) for each in went) == sorted(
        (host, f"{channel:02} {side}", sender, receiver)
        for sender, receiver in (("0", "1"), ("1", "0"))
        for host, side in ((f"node-{int(sender) + 1}", "send"), (f"node-{int(receiver) + 1}", "receive"))
        for channel in (0, 1)
    )


@pytest.mark.parametrize("kind", ["txt", "json"])
def test_a_process_with_two_gpus_is_two_ranks_also_in_the_file_that_lists_its_first(kind: str) -> None:
    said = recorded(f"all_reduce_perf-of-two-gpus.{kind}")
    parsed = nccl_tests.parse_result("", said, 2) if kind == "json" else nccl_tests.parse_result(said, "", 2)
    assert [(each.rank, each.hostname, each.index) for each in parsed.devices] == [(0, "node-1", 0), (1, "node-1", 1)]
    assert parsed.ranks == 2


@pytest.mark.parametrize("file", sorted((RECORDED / "collectives").glob("*.txt")), ids=lambda file: file.stem)
def test_every_collective_is_read_alike_from_its_table_and_its_file(file: Path) -> None:
    table = imports.text(file.read_text(encoding="utf-8").splitlines(), ImportOptions())
    written = imports.json(json.loads(file.with_suffix(".json").read_text(encoding="utf-8")), ImportOptions())
    for parsed in (table, written):
        assert (parsed.options["collective"], parsed.ranks) == (file.stem, 4)
        assert [point.size_bytes for point in parsed.sweep] == [written.sweep[0].size_bytes]
        assert [each.index for each in parsed.devices] == [0, 1, 2, 3]
    assert table.sweep[0].time_s[0] == pytest.approx(written.sweep[0].time_s[0], abs=0.5e-8)
