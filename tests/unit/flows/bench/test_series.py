"""Which launches of a benchmark are made and recorded, one after the other. What a launch measures is stood in for."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.bench import synthetic
from vsphere_ml.bench.launch import matrix
from vsphere_ml.bench.launch.events import BenchEvent, PrecisionReached
from vsphere_ml.bench.model.record import Outcome, Proof, Run, Verdict, Workload
from vsphere_ml.bench.proof.launch_context import MeasuredLinks
from vsphere_ml.bench.records import store
from vsphere_ml.bench.stats.stop import Stop
from vsphere_ml.core.errors import BenchError, GuestError, NotPossible, VsmlError, VSphereError
from vsphere_ml.flows.bench import launch
from vsphere_ml.flows.bench import series as bench
from vsphere_ml.flows.bench.watch import Enough

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.golden import Golden
    from vsphere_ml.bench.launch.matrix import PlannedLaunch


@dataclass
class Hands:
    """What would act on guests: launches take ten seconds, and differ by a share from one to the next."""

    spread: float = 0.0
    now_s: float = 0.0
    lost_from: int = 99  # the launch before which a guest is lost
    bad: int = 99  # the launch that fails
    refused_from: int = 99  # the launch from which on none can be made
    why: VsmlError = field(default_factory=lambda: NotPossible("no RDMA", code="bench.no-rdma", target="node-1"))
    link_error: VsmlError | None = None  # what keeps links from being measured
    made: list[str] = field(default_factory=list)

    def now(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds

    def clean(self) -> Proof:
        if len(self.made) + 1 >= self.lost_from:
            raise GuestError("node-2 does not answer", code="guest.unreachable", target="node-2")
        return Proof(name="clean", verdict=Verdict.YES)

    def obstacle(self, planned: PlannedLaunch) -> VsmlError | None:
        return self.why if planned.launch >= self.refused_from else None

    def refuse(self, planned: PlannedLaunch, error: VsmlError) -> Run:
        run = replace(synthetic.sweep(2), configuration=planned.configuration, launch=planned.launch, sweep=())
        return replace(
            run, run_id="refused", started="2026-01-31T12:30:00Z", outcome=Outcome.FAILED, reason=error.message
        )

    def measure_links(self, _asked: object, _calibrated: object) -> MeasuredLinks:
        if self.link_error is not None:
            raise self.link_error
        return MeasuredLinks()

    def measure_again(self, link: object) -> float | None:
        raise AssertionError(link)  # no link was measured at first

    def check_packet_sizes(self, nodes: int) -> None:
        raise AssertionError(nodes)  # nothing goes over RDMA here

    def run(self, planned: PlannedLaunch, _measurements: object) -> tuple[Run, VsmlError | None]:
        self.now_s += 10
        self.made.append(f"{planned.configuration.workload} {planned.launch}")
        run = replace(synthetic.sweep(2), configuration=planned.configuration, launch=planned.launch)
        run = replace(run, run_id=f"r{len(self.made)}", started=f"2026-01-31T12:00:{len(self.made):02}Z")
        factor = 1 + self.spread * (len(self.made) % 2)
        points = tuple(replace(each, time_s=tuple(time * factor for time in each.time_s)) for each in run.sweep)
        if len(self.made) == self.bad:
            error = BenchError("horovodrun ended with status 1", code="bench.launch-failed", target="node-1")
            return replace(run, outcome=Outcome.FAILED, reason=error.message, sweep=()), error
        return replace(run, sweep=points), None


class SilentVCenter:
    """A vCenter that does not answer any more."""

    def cpu_times(self, _vms: object, _seconds: float) -> None:
        raise VSphereError("vCenter does not answer", code="vcenter.unreachable", target="vcenter")


@dataclass
class Made:
    """A series that was made: what lies in its record, and what listeners were told."""

    series: bench.Series
    left: Sequence[PlannedLaunch]
    told: list[BenchEvent]
    recorded: tuple[Run, ...]


def series(folder: Path, hands: Hands, *, repeats: int, half_width: float = 0, seconds: float = 0) -> Made:
    spec = matrix.BenchSpec(workloads=(Workload.ALLREDUCE,), nodes=(2,), repeats=repeats)
    events: list[BenchEvent] = []
    vcenter: Any = SilentVCenter()
    made = bench.Series(
        launches=hands,
        vcenter=vcenter,
        clock=hands,
        folder=folder,
        enough=Enough(half_width=half_width, seconds=seconds),
        repeats=repeats,
        notify=events.append,
        began=hands.now(),
    )
    left = made.make([each for each in matrix.plan(spec, ()) if each.done is None])
    return Made(series=made, left=left, told=events, recorded=store.read(folder))


def test_a_record_over_another_interface_is_refused_before_anything_is_launched(tmp_path: Path) -> None:
    made = synthetic.sweep(2)
    store.write(replace(made, link=replace(made.link, interface="eth1")), tmp_path)
    session: Any = SimpleNamespace(cluster=made.cluster, interface="eth0", peers=(), machines={})
    spec: Any = SimpleNamespace(name="synthetic", vcenter=SimpleNamespace(lab="default"))
    events: list[BenchEvent] = []
    unused: Any = None
    bench_spec = matrix.BenchSpec(workloads=(Workload.ALLREDUCE,), nodes=(2,))
    asked = bench.Benchmark(
        spec=spec,
        vcenter=unused,
        guests=unused,
        bench_spec=bench_spec,
        settings=launch.LaunchSettings(),
        folder=tmp_path,
        notify=unused,
        notify_bench=events.append,
        clock=unused,
    )
    with pytest.raises(NotPossible) as refused:
        bench.bench(asked, lambda _asked: session)
    assert (refused.value.code, events) == ("record.other-conditions", [])


def test_launches_end_when_they_agree_and_the_record_says_so(tmp_path: Path, golden: Golden) -> None:
    made = series(tmp_path, Hands(spread=0.001), repeats=10, half_width=0.02)
    assert len(made.recorded) == 5
    (diagnostic,) = made.recorded[-1].diagnostics
    assert diagnostic.code == "bench.precision-reached"
    assert {run.method.repeats_ci_target for run in made.recorded} == {0.02}
    golden(diagnostic.message)
    assert [each.why for each in made.told if isinstance(each, PrecisionReached)] == [Stop.PRECISE] * 5


def test_launches_that_differ_go_on_until_the_time_is_up(tmp_path: Path, golden: Golden) -> None:
    made = series(tmp_path, Hands(spread=0.2), repeats=10, half_width=0.02, seconds=45)
    assert len(made.recorded) == 5
    golden(made.recorded[-1].diagnostics[0].message)


def test_without_a_rule_every_launch_is_made(tmp_path: Path) -> None:
    made = series(tmp_path, Hands(), repeats=4)
    assert [run.diagnostics for run in made.recorded] == [()] * 4
    assert [run.method.repeats_ci_target for run in made.recorded] == [None] * 4


def test_a_launch_that_fails_does_not_keep_the_others_back(tmp_path: Path) -> None:
    made = series(tmp_path, Hands(bad=2), repeats=3)
    assert [run.outcome for run in made.recorded] == [Outcome.COMPLETE, Outcome.FAILED, Outcome.COMPLETE]
    assert [error.code for error in made.series.errors] == ["bench.launch-failed"]


def test_what_cannot_be_launched_is_refused_once_however_often_it_was_to_be(tmp_path: Path) -> None:
    made = series(tmp_path, Hands(refused_from=2), repeats=4)
    assert [run.launch for run in made.recorded] == [1, 2]
    assert [error.code for error in made.series.errors] == ["bench.no-rdma"]


def test_a_guest_that_is_lost_leaves_a_failed_launch_and_ends_the_series(tmp_path: Path, golden: Golden) -> None:
    made = series(tmp_path, Hands(lost_from=2), repeats=4)
    golden([(run.outcome.value, run.reason) for run in made.recorded])
    assert made.series.errors[0].status == 5
    assert [each.launch for each in made.left] == [3, 4]


@pytest.mark.parametrize("kind", [BenchError, GuestError])
def test_a_launch_that_went_well_is_kept_though_its_links_cannot_be_measured(
    kind: type[BenchError | GuestError], tmp_path: Path
) -> None:
    error = kind("node-2 does not answer", code="guest.timeout", target="node-2")
    made = series(tmp_path, Hands(link_error=error), repeats=1).series
    links = made.measure_links(synthetic.sweep(2).configuration)
    assert [each.code for each in links.diagnostics] == ["bench.not-measured"]
    link = replace(synthetic.sweep(2).configuration, workload=Workload.LINK)
    with pytest.raises(kind):
        made.measure_links(link)


def test_a_launch_is_kept_though_vcenter_does_not_tell_what_cpus_waited_for(tmp_path: Path) -> None:
    made = series(tmp_path, Hands(), repeats=1)
    assert made.series.cpu_times(["node-1"], 10.0) == {}
