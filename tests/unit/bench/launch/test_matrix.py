"""Which launches a request comes to, and which of them a record already has."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.bench.jobs import OPEN_MPI_4, OPEN_MPI_5
from vsphere_ml.bench.launch.matrix import MOST_STEP_TIMES, BenchSpec, check_spec, expand, over_mpi, over_nccl, plan
from vsphere_ml.bench.model.job import MPICH, RunIn
from vsphere_ml.bench.model.launcher_names import Backend, LauncherName
from vsphere_ml.bench.model.record import Arithmetic, Outcome, Run, Steps, Workload
from vsphere_ml.bench.model.transports import Transport
from vsphere_ml.bench.records import store
from vsphere_ml.core import json_memory
from vsphere_ml.core.errors import ConfigError

WISH = BenchSpec(
    workloads=(Workload.TRAIN, Workload.ALLREDUCE),
    nodes=(4, 1, 2),
    transports=(Transport.ROCE, Transport.TCP),
    gradients=("fp16", "fp32"),
)


def run(configuration: object, outcome: Outcome = Outcome.COMPLETE) -> Run:
    return Run(
        run_id="r",
        started="2026-01-31T12:00:00Z",
        ended="2026-01-31T12:00:00Z",
        outcome=outcome,
        configuration=configuration,  # type: ignore[arg-type]
    )


def test_the_smallest_comes_first_and_the_order_is_always_the_same() -> None:
    made = [(each.nodes, each.workload.value, each.transport.value, each.gradients) for each in expand(WISH)]
    assert made[:2] == [(1, "train", "tcp", "fp32"), (1, "train", "tcp", "fp16")]
    assert made[2:8] == [
        (2, "allreduce", "tcp", "fp32"),
        (2, "allreduce", "roce", "fp32"),
        (2, "train", "tcp", "fp32"),
        (2, "train", "tcp", "fp16"),
        (2, "train", "roce", "fp32"),
        (2, "train", "roce", "fp16"),
    ]
    assert len(made) == 14
    assert expand(replace(WISH, nodes=(1, 2, 4), gradients=("fp32", "fp16"))) == expand(WISH)


def test_trainings_alone_are_crossed_with_arithmetic() -> None:
    mixed = replace(WISH, nodes=(2,), gradients=("fp32",), precisions=(Arithmetic.MIXED_BFLOAT16, Arithmetic.FP32))
    made = [(each.workload.value, each.precision) for each in expand(mixed) if each.transport is Transport.TCP]
    assert made == [("allreduce", "fp32"), ("train", "fp32"), ("train", "mixed_bfloat16")]
    (only,) = expand(replace(mixed, workloads=(Workload.ALLREDUCE,), transports=(Transport.TCP,), precisions=()))
    assert only.precision == "fp32"


def test_what_the_record_has_is_not_made_again() -> None:
    first, second, *_ = expand(WISH)
    recorded = [run(replace(first, parameters=7)), run(second, Outcome.FAILED)]
    planned = plan(WISH, recorded)
    assert [each.done is not None for each in planned] == [True, *[False] * 13]


def test_every_configuration_is_launched_once_before_any_is_launched_again() -> None:
    planned = plan(replace(WISH, repeats=2), [])
    assert [each.launch for each in planned] == [1] * 14 + [2] * 14
    assert plan(replace(WISH, repeats=2), [run(planned[0].configuration)])[14].done is None


def test_what_ranks_are_told_makes_another_configuration() -> None:
    configurations = expand(replace(WISH, variables={"NCCL_ALGO": "RING", "A": "1"}))
    assert {each.options["variables"] for each in configurations} == {"A=1 NCCL_ALGO=RING"}
    assert configurations != expand(WISH)
    assert "variables" not in expand(WISH)[0].options


def test_the_version_of_mpi_makes_another_configuration() -> None:
    spec = replace(WISH, backend="mpi")
    assert expand(over_mpi(spec, OPEN_MPI_4)) != expand(over_mpi(spec, OPEN_MPI_5))
    assert expand(over_mpi(spec, OPEN_MPI_5)) != expand(over_mpi(spec, replace(OPEN_MPI_5, mpi=MPICH)))
    assert expand(over_mpi(WISH, OPEN_MPI_4)) == expand(WISH)


@pytest.mark.parametrize(
    ("launcher", "named", "gpus", "backend"),
    [
        (LauncherName.TORCHRUN, False, (2, 4), Backend.NCCL),
        (LauncherName.TORCHRUN, False, (2, 1), Backend.GLOO),  # the second node has a GPU for one of its ranks
        (LauncherName.TORCHRUN, True, (2, 2), Backend.GLOO),
        (LauncherName.HOROVODRUN, False, (2, 2), Backend.GLOO),
    ],
)
def test_torchruns_ranks_talk_over_nccl_where_each_has_a_gpu_and_nobody_named_another(
    launcher: str,
    named: bool,  # noqa: FBT001 - a parameter
    gpus: tuple[int, ...],
    backend: Backend,
) -> None:
    spec = replace(WISH, launcher=launcher, backend_named=named, slots=2)
    assert over_nccl(spec, gpus).backend == backend


def test_links_are_measured_over_more_than_what_is_launched_over() -> None:
    spec = replace(WISH, workloads=(Workload.LINK, Workload.ALLREDUCE), nodes=(2,), transports=(Transport.TCP,))
    made = expand(replace(spec, link_transports=(Transport.TCP, Transport.ROCE)))
    assert [(each.workload.value, each.transport.value) for each in made] == [
        ("link", "tcp"),
        ("link", "roce"),
        ("allreduce", "tcp"),
    ]


def test_copies_inside_nodes_are_measured_once_on_all_of_them() -> None:
    spec = replace(WISH, workloads=(Workload.MEMCPY,), nodes=(1, 2, 4))
    (made,) = expand(spec)
    assert (made.nodes, made.ranks, made.transport, made.launcher) == (4, 4, Transport.TCP, "")


def test_launchers_are_crossed_with_the_rest_and_each_has_its_own_mpi() -> None:
    stacks = ((LauncherName.HOROVODRUN, Backend.GLOO), (LauncherName.MPIRUN, Backend.MPI))
    spec = BenchSpec(workloads=(Workload.LINK, Workload.TRAIN), nodes=(2,), stacks=stacks)
    made = [(each.workload.value, each.launcher, each.options) for each in expand(over_mpi(spec, OPEN_MPI_4))]
    assert made == [("link", "", {}), ("train", "horovodrun", {}), ("train", "mpirun", {"mpi": "4.1.8"})]


def test_nccl_is_started_by_mpirun_whatever_starts_the_others() -> None:
    (made,) = expand(replace(WISH, workloads=(Workload.NCCL,), nodes=(2,), transports=(Transport.ROCE,), slots=2))
    assert (made.launcher, made.backend, made.ranks) == ("mpirun", "nccl", 4)
    (inside,) = expand(
        replace(
            WISH, workloads=(Workload.NCCL,), nodes=(2,), transports=(Transport.ROCE,), slots=2, within=RunIn.CONTAINER
        )
    )
    assert inside.options == {"in": "container"}


def test_a_record_that_could_not_be_read_is_refused_before_it_is_measured() -> None:
    spec = BenchSpec(nodes=(4,), slots=8, repeats=5, options={Workload.TRAIN: {"steps": "7500"}})
    check_spec(spec)  # 7500 steps × 32 ranks × 5 launches × 5 times
    with pytest.raises(ConfigError) as refusal:
        check_spec(replace(spec, options={Workload.TRAIN: {"steps": "7501"}}))
    assert (refusal.value.code, refusal.value.hint) == ("usage", "--steps 7500")


def test_as_many_step_times_as_are_measured_can_be_read() -> None:
    few = 1000
    steps = Steps(step_s=((12.345678,) * few,), compute_s=((12.345678,) * few,))
    (configuration, *_) = expand(WISH)
    content = store.text(replace(run(configuration), steps=steps))
    assert json_memory.memory(content) / (2 * few) * MOST_STEP_TIMES <= json_memory.MOST
    assert len(content) / (2 * few) * MOST_STEP_TIMES <= store.LARGEST
