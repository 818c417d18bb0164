"""A study on guests that have no RDMA: what is recorded is not launched again, and the rest is refused and recorded."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from tests.fakes.clock import FakeClock
from tests.fakes.requirements import nodes
from tests.unit.bench.studies.studies import measured
from tests.unit.bench.studies.studies import spec as bench_spec
from tests.unit.flows.bench.test_launch import Site
from vsphere_ml.bench.launch.events import Launching, LaunchSkipped
from vsphere_ml.bench.model.record import Outcome
from vsphere_ml.bench.model.transports import Transport
from vsphere_ml.bench.probe.machines import Machine
from vsphere_ml.bench.records import store
from vsphere_ml.bench.studies import ats, passthrough, pvrdma
from vsphere_ml.bench.studies.side_by_side import CellState
from vsphere_ml.core.errors import NotPossible
from vsphere_ml.core.model.device_kinds import GpuKind
from vsphere_ml.core.model.spec import GpuRequest
from vsphere_ml.flows.bench.launch import BenchSession, LaunchSettings
from vsphere_ml.flows.bench.series import Benchmark
from vsphere_ml.flows.bench.study import StudyOutcome, run_study

if TYPE_CHECKING:
    from vsphere_ml.bench.launch.matrix import BenchSpec
    from vsphere_ml.bench.model.record import Configuration
    from vsphere_ml.bench.studies.study_design import StudyDesign

OVER = (Transport.TCP, Transport.PVRDMA, Transport.ROCE, Transport.GPUDIRECT)


def record(folder: Path, asked: Configuration, cluster: str = "train", plan_digest: str = "") -> None:
    for run in measured(asked, launches=2):
        where = replace(run.cluster, name=cluster, plan_digest=plan_digest)  # type: ignore[type-var]
        store.write(
            replace(
                run, cluster=where, placement=(), run_id=f"{asked.nodes}-{asked.transport}-{run.launch}-{asked.options}"
            ),
            folder,
        )


def run(
    folder: Path, design: StudyDesign, wanted: BenchSpec, site: Any = None, **guests: Any
) -> tuple[StudyOutcome, list[Any]]:
    """Carry a study out; `guests` is what the survey finds in each."""
    events: list[Any] = []
    there = Site(folder)

    def open_session(_asked: Benchmark) -> BenchSession:
        made = there.session
        surveyed = tuple(replace(each, **guests) for each in made.surveyed)
        spec: Any = SimpleNamespace(**vars(made.spec), **vars(site or SimpleNamespace()))
        return replace(made, spec=spec, surveyed=surveyed, machines={peer.name: Machine() for peer in made.peers})

    unused: Any = None
    benchmark = Benchmark(
        spec=SimpleNamespace(name="train", vcenter=SimpleNamespace(lab="default"), file=Path("my.toml")),  # type: ignore[arg-type]
        vcenter=unused,
        guests=unused,
        bench_spec=wanted,
        settings=LaunchSettings(),
        folder=folder,
        notify=unused,
        notify_bench=events.append,
        clock=FakeClock(),
        factor=design.factor,
    )
    return run_study(benchmark, design, open_session), events


def test_rdma_is_refused_and_recorded_once_and_what_is_measured_is_not_launched_again(tmp_path: Path) -> None:
    wanted = bench_spec(transports=OVER, launcher="mpirun", backend="mpi", repeats=2)
    for each in pvrdma.DESIGN.cells(replace(wanted, transports=(Transport.TCP,))):
        record(tmp_path, each)
    done, events = run(tmp_path, pvrdma.DESIGN, wanted)
    assert not [each for each in events if isinstance(each, Launching)]
    assert len([each for each in events if isinstance(each, LaunchSkipped)]) == 3
    states = [cell.state for row in done.result.rows for cell in row.cells if cell is not None]
    assert states == [CellState.MEASURED, CellState.MEASURED, *[CellState.REFUSED] * 3]
    assert {cell.code for cell in done.result.cells if cell.state is CellState.REFUSED} == {"bench.no-rdma"}
    assert done.errors == ()  # something was measured
    refusals = [each for each in store.read(tmp_path) if each.outcome is Outcome.REFUSED]
    assert [each.diagnostics[0].code for each in refusals] == ["bench.no-rdma"] * 3
    again, _ = run(tmp_path, pvrdma.DESIGN, wanted)
    assert again.result == done.result
    assert len(store.read(tmp_path)) == 2 * 2 + 3


def test_a_study_of_which_nothing_can_be_measured_ends_with_the_refusal_s_status(tmp_path: Path) -> None:
    wanted = bench_spec(nodes=(2,), transports=(Transport.PVRDMA,), launcher="mpirun", backend="mpi")
    done, _ = run(tmp_path, pvrdma.DESIGN, wanted)
    assert [each.code for each in done.errors] == ["bench.no-rdma"]


def test_the_record_before_is_found_again_and_the_next_command_is_named(tmp_path: Path) -> None:
    wanted = bench_spec(nodes=(2,), transports=(Transport.TCP,), repeats=2)
    before, after = ats.DESIGN.cells(wanted)
    record(tmp_path, before)
    done, events = run(tmp_path, ats.DESIGN, wanted, ats=False)
    assert not [each for each in events if isinstance(each, Launching)]
    assert done.next_steps == ("vsml enable-ats my.toml",)
    record(tmp_path, after)
    done, events = run(tmp_path, ats.DESIGN, wanted, ats=True)
    assert not [each for each in events if isinstance(each, Launching)]
    assert [cell.state for cell in done.result.cells] == [CellState.MEASURED] * 2
    assert done.next_steps == ()


def test_a_state_that_nobody_can_tell_ends_the_study_before_anything_is_recorded(tmp_path: Path) -> None:
    with pytest.raises(NotPossible) as refused:
        run(tmp_path, ats.DESIGN, bench_spec(nodes=(2,)), ats=None)
    assert (refused.value.code, [*tmp_path.iterdir()]) == ("bench.no-condition", [])


def test_vgpu_and_passthrough_of_two_cluster_files_are_one_study(tmp_path: Path) -> None:
    wanted = bench_spec(nodes=(2,), transports=(Transport.ROCE, Transport.GPUDIRECT), repeats=2)
    for each in passthrough.DESIGN.cells(wanted):
        if each.options["gpu"] == "vgpu":
            record(tmp_path, each, cluster="train-vgpu", plan_digest="sha256:of the other file")
    given = GpuRequest(kind=GpuKind.PASSTHROUGH, device="A100")
    site = SimpleNamespace(nodes=nodes(2, gpu=given))
    done, _ = run(tmp_path, passthrough.DESIGN, wanted, site=site)
    assert [(cell.column, cell.state) for cell in done.result.cells] == [
        (column, state)
        for _ in wanted.transports
        for column, state in (("vgpu", CellState.MEASURED), ("passthrough", CellState.REFUSED))
    ]
    mixed = SimpleNamespace(nodes=(*nodes(1), *nodes(1, gpu=given)))
    with pytest.raises(NotPossible) as refused:
        run(tmp_path, passthrough.DESIGN, wanted, site=mixed)
    assert refused.value.code == "bench.no-condition"
