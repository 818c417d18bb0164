"""What ranks told of their time, as the record of a launch holds it, and what is said of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.bench.jobs import job, place, told, traffic
from vsphere_ml.bench.analysis.explain import explain
from vsphere_ml.bench.analysis.study import study
from vsphere_ml.bench.model import rank_log
from vsphere_ml.bench.model.record import Cluster, CpuContention, LocalSteps, Run
from vsphere_ml.bench.probe.survey import Surveyed
from vsphere_ml.bench.proof import evidence
from vsphere_ml.bench.proof.launch_context import LaunchContext
from vsphere_ml.bench.records import store
from vsphere_ml.core.model.cpu_times import CpuTimes

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

STEPS = 40


def trained(
    rank: int, *, input_s: float = 0.001, compute_s: float = 0.05, wall_s: float = 8.8, loss: float = 2.5
) -> str:
    """Return what a rank tells of so many steps of 200 ms, with a local step of 80 ms after every fourth."""
    lines = [place(rank), told(kind="contention", steal=0.02, pressure=0.5)]
    for at in range(STEPS):
        lines.append(told(kind="step", step=at, seconds=0.2, input_s=input_s, work_s=0.19 - input_s, loss=loss))
        if at % 4 == 3:
            lines.append(told(kind="local", seconds=0.08, compute_s=compute_s, exchange_s=0.02))
    lines += [told(kind="wall", seconds=wall_s), told(kind="sync", weights="aa11"), told(kind="end"), traffic(rank)]
    return "".join(lines)


def record(
    first: str, second: str, cpu_times: Mapping[str, CpuTimes] | None = None, *, lab: bool = True, **of_first: Any
) -> Run:
    ours = {"node-1": of_first, "node-2": {}}
    context = LaunchContext(
        job=job(),
        launch=1,
        started="2026-01-31T12:00:00Z",
        ended="2026-01-31T12:01:00Z",
        cluster=Cluster(name="train"),
        lab=lab,
        machines={},
        surveyed=tuple(Surveyed(node=name, runtime=True, mtu={"eth0": 1500}, **has) for name, has in ours.items()),
        cpu_times=cpu_times or {},
    )
    return evidence.run(context, rank_log.read({"node-1": first, "node-2": second}), "")


def codes(run: Run) -> dict[str, str]:
    """Return what is found in the record, each code with its target."""
    return {each.code: each.target for each in explain(study((run,)))}


def test_a_record_has_each_part_of_each_step_and_can_be_read_again(tmp_path: Path) -> None:
    run = record(trained(0), trained(1, loss=float("nan")))
    assert run.steps is not None
    assert run.steps.input_s == ((0.001,) * STEPS,) * 2
    assert run.steps.work_s == ((0.189,) * STEPS,) * 2
    assert run.steps.loss == ((2.5,) * STEPS, (None,) * STEPS)
    assert run.steps.wall_s == (8.8, 8.8)
    assert run.steps.local == LocalSteps(
        period_s=((0.08,) * 10,) * 2, compute_s=((0.05,) * 10,) * 2, exchange_s=((0.02,) * 10,) * 2
    )
    store.write(run, tmp_path)
    assert store.read(tmp_path) == (run,)
    assert not codes(run).keys() & {"bench.straggler", "bench.input-bound", "bench.time-uncounted"}


@pytest.mark.parametrize(
    ("lab", "has", "found"),
    [
        (False, {"gpus": 2}, {"bench.no-gpu-runtime": "node-1"}),
        (False, {"gpus": 2, "horovod_nccl": True}, {}),
        (True, {"gpus": 2}, {}),
    ],
)
def test_training_beside_gpus_that_horovod_cannot_reach_is_in_the_record(
    lab: bool,  # noqa: FBT001 - a parameter
    has: dict[str, Any],
    found: dict[str, str],
) -> None:
    run = record(trained(0), trained(1), lab=lab, **has)
    told = {each.code: each.target for each in run.diagnostics if each.code == "bench.no-gpu-runtime"}
    assert told == found


def test_what_not_all_ranks_told_is_left_out() -> None:
    run = record(trained(0), trained(1).replace('"kind": "local"', '"kind": "elsewhere"').replace('"loss"', '"other"'))
    assert run.steps is not None
    assert (run.steps.local, run.steps.loss) == (None, ())


def test_a_slow_rank_is_named_by_its_local_steps() -> None:
    assert codes(record(trained(0), trained(1, compute_s=0.065)))["bench.straggler"] == "node-2"


def test_a_throttled_input_pipeline_is_named_and_its_rank_is_no_straggler() -> None:
    found = codes(record(trained(0), trained(1, input_s=0.1)))
    assert found["bench.input-bound"] == "node-2"
    assert "bench.straggler" not in found


def test_time_that_does_not_add_up_is_told() -> None:
    assert "bench.time-uncounted" in codes(record(trained(0), trained(1, wall_s=8.9)))


@pytest.mark.parametrize(
    ("waited", "accused"),
    [
        (CpuTimes(ready=0.08, costop=0.0), "node-2"),
        (CpuTimes(ready=0.0, costop=0.04), "node-2"),
        (CpuTimes(ready=0.01, costop=0.01), None),
        (CpuTimes(), None),
    ],
)
def test_what_kept_cpus_from_running_stands_beside(waited: CpuTimes, accused: str | None) -> None:
    run = record(trained(0), trained(1), {"node-2": waited})
    assert run.contention == (
        CpuContention(node="node-1", steal=0.02, pressure=0.5),
        CpuContention(node="node-2", steal=0.02, pressure=0.5, ready=waited.ready, costop=waited.costop),
    )
    assert codes(run).get("bench.cpu-contention") == accused


def test_steal_is_told_whatever_vcenter_says() -> None:
    assert (
        codes(record(trained(0).replace('"steal": 0.02', '"steal": 0.2'), trained(1)))["bench.cpu-contention"]
        == "node-1"
    )
