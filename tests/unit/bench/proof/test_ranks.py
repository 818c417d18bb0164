"""What ranks told, read and judged."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.unit.bench.jobs import job, place, told, trained
from vsphere_ml.bench.analysis.explain import explain
from vsphere_ml.bench.analysis.study import study
from vsphere_ml.bench.model import rank_log
from vsphere_ml.bench.model.record import Cluster, Outcome, Run, Verdict, Workload
from vsphere_ml.bench.probe.machines import Machine
from vsphere_ml.bench.probe.survey import Surveyed
from vsphere_ml.bench.proof import evidence, ranks
from vsphere_ml.bench.proof.launch_context import LaunchContext
from vsphere_ml.core.errors import BenchError, PlacementError

if TYPE_CHECKING:
    from tests.golden import Golden

HOSTS = {"node-1": "esx-01", "node-2": "esx-02"}


def record(
    texts: dict[str, str],
    workload: Workload = Workload.TRAIN,
    hosts: dict[str, str] = HOSTS,
    least_nodes: int = 0,
    log: str = "",
) -> Run:
    context = LaunchContext(
        job=replace(job(workload), least_nodes=least_nodes),
        launch=1,
        started="2026-01-31T12:00:00Z",
        ended="2026-01-31T12:01:00Z",
        cluster=Cluster(name="train"),
        lab=True,
        machines={name: Machine(host=host) for name, host in hosts.items()},
        surveyed=tuple(Surveyed(node=name, runtime=True, mtu={"eth0": 1500}) for name in ("node-1", "node-2")),
    )
    return evidence.run(context, rank_log.read(texts), log)


def test_a_program_that_does_not_say_what_it_used_has_no_device_where_there_are_gpus() -> None:
    gpu = [{"uuid": "GPU-1", "name": "GRID A100-40C"}]
    run = record({"node-1": place(0, gpus=gpu), "node-2": place(1)}, Workload.SCRIPT)
    assert [each.device for each in run.placement] == ["", "cpu"]


def test_a_good_launch_is_proven_and_says_where_each_rank_ran() -> None:
    run = record({"node-1": trained(0), "node-2": trained(1)})
    assert run.outcome is Outcome.COMPLETE
    assert {each.name: each.verdict for each in run.proofs} == {
        "placement": Verdict.YES,
        "in_sync": Verdict.YES,
        "path": Verdict.YES,
    }
    assert [(each.rank, each.node, each.host, each.device) for each in run.placement] == [
        (0, "node-1", "esx-01", "cpu"),
        (1, "node-2", "esx-02", "cpu"),
    ]
    assert run.steps is not None
    assert run.steps.step_s == ((2.0, 0.1, 0.1), (2.0, 0.1, 0.1))
    assert (run.configuration.parameters, run.link.mtu_bytes, run.diagnostics) == (7, 1500, ())
    assert evidence.invalid_reason(run) is None


def test_ranks_that_differ_after_training_make_a_run_invalid_whatever_its_speed() -> None:
    run = record({"node-1": trained(0), "node-2": trained(1, weights="bb22")})
    assert (run.outcome, run.steps) == (Outcome.INVALID, None)
    error = evidence.invalid_reason(run)
    assert error is not None
    assert error.code == "bench.not-in-sync"
    assert "rank 0: aa11, rank 1: bb22" in error.message


def test_weights_that_are_no_numbers_show_nothing_though_their_hashes_are_equal() -> None:
    nan = [trained(rank).replace('"weights": "aa11"', '"weights": "aa11", "finite": false') for rank in (0, 1)]
    run = record({"node-1": nan[0], "node-2": nan[1]})
    assert (run.outcome, run.proof("in_sync")) == (Outcome.COMPLETE, Verdict.UNKNOWN)
    assert [each.code for each in run.diagnostics] == ["bench.not-finite"]
    assert "bench.not-finite" in [each.code for each in explain(study((run,)))]
    apart = record({"node-1": nan[0], "node-2": nan[1].replace("aa11", "bb22")})
    assert apart.outcome is Outcome.INVALID


@pytest.mark.parametrize(
    "texts",
    [
        # Open MPI 5 without a host file runs every rank where it stands.
        {"node-1": trained(0) + trained(1, local_rank=1), "node-2": ""},
        # Two jobs of one rank each, as when the ranks do not find one another.
        {"node-1": trained(0, size=1), "node-2": trained(1, size=1)},
        # One system under two names.
        {"node-1": trained(0), "node-2": trained(1, boot_id="boot-0")},
    ],
)
def test_ranks_elsewhere_than_asked_are_a_failure_of_its_own(texts: dict[str, str], golden: Golden) -> None:
    run = record(texts)
    assert run.outcome is Outcome.INVALID
    error = evidence.invalid_reason(run)
    assert isinstance(error, PlacementError)
    assert error.status == 8
    golden(error)


def test_nodes_on_one_esxi_host_are_labelled_as_not_inter_host() -> None:
    run = record({"node-1": trained(0), "node-2": trained(1)}, hosts=dict.fromkeys(HOSTS, "esx-01"))
    assert [(each.code, each.target) for each in run.diagnostics] == [("bench.one-host", "esx-01")]
    assert "not inter-host" in run.diagnostics[0].message


def test_a_sweep_counts_the_slowest_rank_of_each_repeat() -> None:
    def swept(rank: int, *seconds: float, right: bool = True) -> str:
        line = told(kind="sweep", size_bytes=1024, seconds=seconds, right=right)
        return place(rank) + line + told(kind="end")

    run = record({"node-1": swept(0, 0.1, 0.4), "node-2": swept(1, 0.3, 0.2)}, Workload.ALLREDUCE)
    assert run.sweep[0].time_s == (0.3, 0.4)
    wrong = record({"node-1": swept(0, 0.1), "node-2": swept(1, 0.3, right=False)}, Workload.ALLREDUCE)
    assert wrong.proof(ranks.IN_SYNC) is Verdict.NO


def test_ranks_that_did_not_come_to_their_end_gave_no_samples(golden: Golden) -> None:
    cut = trained(1).partition(told(kind="end"))[0] + '{"kind": "st'
    with pytest.raises(BenchError) as failed:
        record({"node-1": trained(0), "node-2": cut})
    assert (failed.value.code, failed.value.target) == ("bench.no-samples", "node-1")
    golden(failed.value)
    assert failed.value.code == "bench.no-samples"


@pytest.mark.parametrize(
    "line",
    [
        *(told(kind="step", seconds=each) for each in ("soon", math.nan, math.inf, -1, 10**400)),
        told(kind="sweep", size_bytes=math.inf, seconds=[1], right=True),
        told(kind="sweep", size_bytes=8, seconds=[1], right=True, sent={"eth0": []}, exchanges=1),
        told(kind="traffic", bytes=[], peers=[]),
        told(kind="traffic", bytes={}, peers=["node-1"]),
        told(kind="traffic", bytes={}, peers=[{"own": "10.0.0.1"}]),
        told(kind="model", versions=["2.15"]),
        told(kind="clocks", gpus=["GPU-1"]),
        place(1, interface="eth0"),
        place(1, gpus=["GPU-1"]),
    ],
)
def test_a_line_that_cannot_be_meant_is_an_error_with_its_node(line: str) -> None:
    with pytest.raises(BenchError) as failed:
        rank_log.read({"node-2": place(1) + line})
    assert (failed.value.code, failed.value.target) == ("bench.bad-line", "node-2")


def test_a_line_that_is_nested_beyond_reading_is_none_of_ours() -> None:
    (log,) = rank_log.read({"node-2": place(1) + '{"kind":' + "[" * 100_000 + "\n"})
    assert log.rank == 1


def test_nccls_version_and_its_cuda_are_read_from_its_log() -> None:
    log = "node-1:77:77 [0] NCCL INFO cudaDriverVersion 12020\nNCCL version 2.18.3+cuda12.2\n"  # written by hand
    run = record({"node-1": trained(0), "node-2": trained(1)}, log=log)
    assert (run.environment.versions["nccl"], run.environment.versions["cuda"]) == ("2.18.3", "12.2")


def test_a_gpu_that_was_used_is_named_by_its_uuid() -> None:
    gpus = [{"uuid": "GPU-0aa", "name": "GRID A100-40C"}]
    used = trained(0, gpus=gpus).replace('"CPU"', '"GPU:0"')
    run = record({"node-1": used, "node-2": trained(1)})
    assert [each.device for each in run.placement] == ["GPU-0aa", "cpu"]


def test_an_elastic_job_tells_how_its_ranks_became_fewer() -> None:
    begun = place(0) + told(kind="elastic", step=0, size=2) + told(kind="step", seconds=0.2) * 3
    went_on = told(kind="elastic", step=2, size=1) + told(kind="step", seconds=0.1) * 2
    run = record(
        {"node-1": begun + went_on + told(kind="sync", weights="aa") + told(kind="end"), "node-2": place(1)},
        least_nodes=1,
    )
    assert [(each.ranks, each.first_step, each.step_s) for each in run.worlds] == [
        (2, 0, (0.2, 0.2, 0.2)),
        (1, 2, (0.1, 0.1)),
    ]
    assert run.steps is None
    assert [(each.code, each.target) for each in run.diagnostics] == [("bench.lost-node", "node-2")]
