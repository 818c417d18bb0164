"""nccl-tests, from where it lies to the record of a launch. Its logs are written by hand (tests/cases/nccl/README.md).

The probe runs in a real shell, and what a GPU is needed for runs where there is one.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests import skips
from tests.unit.bench.jobs import OPEN_MPI_5, job, place, traffic
from tests.unit.bench.sites import rdma_nodes
from vsphere_ml.bench.launch.programs import with_program
from vsphere_ml.bench.model import rank_log
from vsphere_ml.bench.model.job import RunIn
from vsphere_ml.bench.model.record import Cluster, Outcome, Run, Verdict, Workload
from vsphere_ml.bench.model.transports import Transport
from vsphere_ml.bench.probe import nccl_tests
from vsphere_ml.bench.probe.nccl_tests import AllReducePerf
from vsphere_ml.bench.proof import evidence
from vsphere_ml.bench.proof.launch_context import LaunchContext
from vsphere_ml.core.errors import BenchError, NotPossible

if TYPE_CHECKING:
    from tests.golden import Golden

CASES = Path(__file__).parents[3] / "cases"
TESTS = AllReducePerf(path="/opt/nccl-tests/build/all_reduce_perf", over_mpi=True, options=frozenset())
OPTIONS = {"smallest": "1M", "largest": "4M", "iterations": "20"}


def log(name: str) -> str:
    return (CASES / "nccl" / f"{name}.log").read_text(encoding="utf-8")


SIZES = (1 << 20, 4 << 20, 16 << 20, 64 << 20)


def launched(name: str, transport: Transport, result: str = "", log_: str = "") -> Run:
    """Return the record of a launch whose log is that of this name, or `log_`."""
    text = log_ or log(name)
    made = job(Workload.NCCL, "mpirun", "nccl", OPEN_MPI_5)
    asked = replace(made.configuration, transport=transport, options=OPTIONS)
    made = with_program(replace(made, configuration=asked), None, (), TESTS)
    context = LaunchContext(
        job=made,
        launch=1,
        started="2026-01-31T12:00:00Z",
        ended="2026-01-31T12:01:00Z",
        cluster=Cluster(name="train"),
        lab=False,
        machines={},
        surveyed=rdma_nodes(),
    )
    gpus = [{"uuid": "GPU-1", "name": "GRID A100-40C"}]
    logs = rank_log.read({f"node-{rank + 1}": place(rank, gpus=gpus) + traffic(rank) for rank in (0, 1)})
    measured = nccl_tests.parse_result(text, result, made.ranks)
    return evidence.run(context, nccl_tests.with_measurements(logs, measured), text)


def test_a_launch_becomes_a_sweep_with_its_path_and_its_gpus_proven() -> None:
    run = launched("gpudirect", Transport.GPUDIRECT)
    assert run.outcome is Outcome.COMPLETE
    assert [point.size_bytes for point in run.sweep] == [1 << 20, 2 << 20, 4 << 20]
    assert [time for point in run.sweep for time in point.time_s] == pytest.approx([104.9e-6, 209.7e-6, 419.4e-6])
    assert {each.name: each.verdict.value for each in run.proofs} == {
        "placement": "yes",
        "in_sync": "yes",
        "path": "yes",
    }
    assert [each.device for each in run.placement] == ["GPU-1", "GPU-1"]
    assert run.environment.versions["nccl"] == "2.28.9"


@pytest.mark.parametrize(
    ("name", "transport"),
    [
        ("without-gpudirect", Transport.GPUDIRECT),
        ("sockets", Transport.ROCE),
        ("gpudirect", Transport.TCP),
    ],
)
def test_another_path_than_the_one_asked_for_is_an_invalid_launch(
    name: str, transport: Transport, golden: Golden
) -> None:
    run = launched(name, transport)
    assert (run.outcome, run.sweep) == (Outcome.INVALID, ())
    golden(run.reason)
    error = evidence.invalid_reason(run)
    assert error is not None
    assert error.code == "bench.path"


def test_mpis_own_sockets_are_not_taken_for_nccls_path() -> None:
    silent = "".join(line for line in log("sockets").splitlines(keepends=True) if "NCCL INFO" not in line)
    run = launched("sockets", Transport.TCP, log_=silent)
    assert (run.outcome, run.proof("path"), run.paths) == (Outcome.COMPLETE, Verdict.UNKNOWN, ())


def test_hpc_x_plugin_is_rdma_too_and_roce_without_gpudirect_is_what_was_asked() -> None:
    assert launched("plugin-gpudirect", Transport.GPUDIRECT).outcome is Outcome.COMPLETE
    assert launched("without-gpudirect", Transport.ROCE).outcome is Outcome.COMPLETE
    assert launched("sockets", Transport.TCP).outcome is Outcome.COMPLETE


def test_wrong_sums_make_a_launch_invalid_in_the_table_and_in_the_file(golden: Golden) -> None:
    run = launched("wrong-sums", Transport.GPUDIRECT)
    assert (run.outcome, run.sweep) == (Outcome.INVALID, ())
    golden(run.reason)
    document = json.loads((CASES / "imports" / "nccl-tests.json").read_text())
    document["results"][1]["in_place"]["nwrong"] = 7.0
    run = launched("gpudirect", Transport.GPUDIRECT, json.dumps(document))
    assert run.outcome is Outcome.INVALID
    golden(run.reason)


def test_the_file_wins_over_the_table_and_its_iterations_stand_beside_the_tools_own_mean() -> None:
    run = launched("gpudirect", Transport.GPUDIRECT, (CASES / "imports" / "nccl-tests.json").read_text())
    assert [point.time_s[0] for point in run.sweep] == pytest.approx([size / 1e9 for size in SIZES], rel=0.001)
    assert [len(point.time_s) for point in run.sweep] == [1, 1, 1, 1]
    assert [len(point.iterations_s) for point in run.sweep] == [3, 3, 3, 3]


def test_messages_that_no_memory_was_left_for_are_named(golden: Golden) -> None:
    less = log("gpudirect").replace("# Using devices", "# Reducing maxBytes to 4194304 due to memory limitation")
    (diagnostic, left_out) = nccl_tests.parse_result(less, "", 2).diagnostics
    assert (diagnostic.code, left_out.code) == ("import.mean-times", "bench.not-measured")
    golden(left_out.message)


@pytest.mark.parametrize(("text", "ranks"), [("", 2), ("# nothing\n", 2), (log("gpudirect"), 4)])
def test_a_log_that_does_not_tell_of_all_ranks_is_no_measurement(text: str, ranks: int) -> None:
    with pytest.raises(BenchError) as refused:
        nccl_tests.parse_result(text, "", ranks)
    assert refused.value.code == "bench.no-samples"


def test_a_program_that_ran_on_each_rank_alone_is_not_taken_for_one_job() -> None:
    alone = log("gpudirect").replace("Rank  1", "Rank  0")
    with pytest.raises(BenchError) as refused:
        nccl_tests.parse_result(alone, "", 2)
    assert refused.value.code == "bench.no-samples"


def probed(folder: Path, name: str, usage: str, linked: str) -> AllReducePerf | None:
    """Return what the probe finds in a guest whose PATH has this program, and an ldd that says `linked`."""
    for program, text in ((name, f"echo '{usage}'"), ("ldd", f'echo "{linked}"')):
        (folder / program).write_text(f"#!/bin/sh\n{text}\n")
        (folder / program).chmod(0o755)
    path = f"{folder}:{Path(shutil.which('grep') or '').parent}"
    shell = ["/bin/sh", "-c", nccl_tests.probe("")]
    return nccl_tests.parse_probe(
        subprocess.run(shell, capture_output=True, text=True, check=False, env={"PATH": path}).stdout
    )


def test_the_program_is_found_with_what_its_own_help_says_it_can_do(tmp_path: Path) -> None:
    found = probed(tmp_path, "all_reduce_perf_mpi", "USAGE: [-a,--average <0/1/2/3>]", "  libmpi.so.40 => /usr/lib/x")
    assert found == AllReducePerf(path=f"{tmp_path}/all_reduce_perf_mpi", over_mpi=True, options=frozenset({"average"}))


def test_of_two_the_one_that_speaks_mpi_is_taken(tmp_path: Path) -> None:
    (tmp_path / "all_reduce_perf_mpi").write_text("#!/bin/sh\n")
    (tmp_path / "all_reduce_perf_mpi").chmod(0o755)
    found = probed(tmp_path, "all_reduce_perf", "USAGE:", "$(case $1 in *_mpi) ;; *) echo libmpi.so.40 ;; esac)")
    assert found == AllReducePerf(path=f"{tmp_path}/all_reduce_perf", over_mpi=True, options=frozenset())


def test_one_without_mpi_is_found_and_refused(tmp_path: Path, golden: Golden) -> None:
    found = probed(tmp_path, "all_reduce_perf", "USAGE:", "  libcudart.so.12 => /usr/lib/x")
    assert found is not None
    assert not found.over_mpi
    with pytest.raises(NotPossible) as refused:
        nccl_tests.same_program({"node-1": found}, OPEN_MPI_5)
    assert (refused.value.code, refused.value.target) == ("bench.no-nccl-tests", "node-1")
    golden(refused.value)
    assert refused.value.code == "bench.no-nccl-tests"


def test_where_it_lacks_the_command_that_builds_it_is_told(tmp_path: Path, golden: Golden) -> None:
    assert nccl_tests.parse_probe("") is None
    with pytest.raises(NotPossible) as refused:
        nccl_tests.same_program({"node-1": TESTS, "node-2": None}, replace(OPEN_MPI_5, within=RunIn.CONTAINER))
    assert (refused.value.code, refused.value.target) == ("bench.no-nccl-tests", "node-2")
    golden(refused.value)
    golden(refused.value.hint)
    other = replace(TESTS, path="/elsewhere/all_reduce_perf")
    with pytest.raises(NotPossible, match="different builds"):
        nccl_tests.same_program({"node-1": TESTS, "node-2": other}, OPEN_MPI_5)


def test_a_rank_without_a_gpu_is_refused() -> None:
    with pytest.raises(NotPossible, match="node-2: 1") as refused:
        nccl_tests.enough_gpus({"node-1": 2, "node-2": 1}, 2)
    assert refused.value.code == "bench.too-few-gpus"


def test_the_real_program_on_a_real_gpu_is_read(tmp_path: Path) -> None:
    """One rank on this machine: its own table and file, its own help."""
    if shutil.which("nvidia-smi") is None:
        pytest.skip(skips.GPU)
    found = nccl_tests.parse_probe(
        subprocess.run(["/bin/sh", "-c", nccl_tests.probe("")], capture_output=True, text=True, check=False).stdout
    )
    if found is None:
        pytest.skip("no all_reduce_perf is installed")
    words = [found.path, *nccl_tests.options(found, OPTIONS, str(tmp_path))]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=300)
    file = tmp_path / nccl_tests.RESULT
    for result in {"", file.read_text() if file.exists() else ""}:
        measured = nccl_tests.parse_result(done.stdout, result, 1)
        assert [point.size_bytes for point in measured.sweep] == [1 << 20, 2 << 20, 4 << 20]
        assert measured.wrong == ()
