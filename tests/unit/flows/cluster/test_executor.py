"""How a plan is walked: side by side, in order, and what a failure takes with it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from tests.fakes.clock import FakeClock
from tests.fakes.pictures import CLUSTER, quad_8u3, r750xa, site
from tests.fakes.requirements import cluster, nodes
from tests.fakes.site import FakeVCenter
from tests.unit.flows.acting import Told, provision
from vsphere_ml.core.errors import VSphereError
from vsphere_ml.core.plan.changes import (
    CloneVm,
    CreateFolder,
    DeleteFolder,
    DeleteVm,
    MakeRule,
    Marks,
    NewMac,
    PowerOff,
    PowerOn,
    UpgradeHardware,
    subject,
)
from vsphere_ml.core.plan.outcome import Done, Failed, Interrupted, Skipped
from vsphere_ml.core.ports.events import Progressed, Started
from vsphere_ml.core.ports.vcenter import TaskHandle, Update
from vsphere_ml.flows.cluster.executor import ApplyLimits, PlanExecutor, apply

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from tests.golden import Golden
    from vsphere_ml.core.model.cpu_times import CpuTimes
    from vsphere_ml.core.model.device_counts import Ask, Counts, DirectPathProfile, Place
    from vsphere_ml.core.model.inventory import HostRef, Inventory, Vm
    from vsphere_ml.core.plan.changes import Change
    from vsphere_ml.core.ports.vcenter import Scope


@dataclass(slots=True)
class Clockwork:
    """A vCenter without a site: every change takes its time and then succeeds, or fails when told so."""

    takes: Callable[[Change], float] = lambda _change: 1.0  # from when it is begun, or from the end of its queue
    queue: Callable[[Change], float] = lambda _change: 0.0  # so long is it queued before it runs
    bad: Callable[[Change], bool] = lambda _change: False
    interrupt_at: float | None = None
    halfway: bool = False
    clock: FakeClock = field(default_factory=FakeClock)
    begun: list[tuple[float, Change]] = field(default_factory=list)
    most: int = 0
    waits: int = 0
    _due: dict[int, float] = field(default_factory=dict)
    _runs_from: dict[int, float] = field(default_factory=dict)
    _told: set[tuple[int, bool]] = field(default_factory=set)

    def start(self, changes: Sequence[Change]) -> tuple[TaskHandle, ...]:
        return tuple(self._start(change) for change in changes)

    def _start(self, change: Change) -> TaskHandle:
        self.begun.append((self.clock.now(), change))
        task = TaskHandle(len(self.begun), change)
        self._runs_from[task.id] = self.clock.now() + self.queue(change)
        self._due[task.id] = self._runs_from[task.id] + self.takes(change)
        return task

    def wait(self, tasks: Sequence[TaskHandle], timeout_s: float) -> tuple[Update, ...]:
        self.waits += 1
        self.most = max(self.most, len(tasks))
        if self.halfway:
            self.halfway = False
            return tuple(Update(task=task, done=False, percent=50) for task in tasks for _ in range(2))
        if news := tuple(self._of_queues(tasks)):
            return news
        moments = [*(self._due[task.id] for task in tasks), *(self._runs_from[task.id] for task in tasks)]
        until = min(self.clock.now() + timeout_s, *(each for each in moments if each > self.clock.now()))
        if self.interrupt_at is not None and until >= self.interrupt_at:
            raise KeyboardInterrupt
        self.clock.seconds = until
        ripe = [task for task in tasks if self._due[task.id] <= until]
        return tuple(Update(task=task, done=True, error=self._error(task.change)) for task in ripe)

    def _of_queues(self, tasks: Sequence[TaskHandle]) -> Iterator[Update]:
        for task in tasks:
            queued = self._runs_from[task.id] > self.clock.now()
            if self.queue(task.change) and (task.id, queued) not in self._told:
                self._told.add((task.id, queued))
                yield Update(task=task, done=False, queued=queued)

    def _error(self, change: Change) -> VSphereError | None:
        return VSphereError("no luck", code="vsphere.task-failed") if self.bad(change) else None

    def read_site(self, scope: Scope) -> Inventory:
        raise NotImplementedError

    def read(self, vms: Collection[str]) -> tuple[Vm, ...]:
        raise NotImplementedError

    def hold(self, cluster: str) -> AbstractContextManager[None]:
        raise NotImplementedError

    def log_event(self, message: str) -> None:
        raise NotImplementedError

    def vgpu_managers(self, hosts: Collection[HostRef]) -> Mapping[HostRef, str]:
        raise NotImplementedError

    def direct_path_profiles(self) -> tuple[DirectPathProfile, ...]:
        raise NotImplementedError

    def counts(self, asks: Mapping[Place, Sequence[Ask]]) -> Counts:
        raise NotImplementedError

    def cpu_times(self, vms: Collection[str], seconds: float) -> Mapping[str, CpuTimes]:
        raise NotImplementedError

    def file_size(self, file: str) -> int:
        raise NotImplementedError

    def fetch(self, file: str, notify: Callable[[int, int], None]) -> Path:
        raise NotImplementedError

    def close(self) -> None: ...


def walk(changes: Sequence[Change], works: Clockwork, event: Told | None = None, **rate: float) -> tuple[object, ...]:
    notify = Told() if event is None else event
    return apply(changes, works, notify=notify, clock=works.clock, rate=ApplyLimits(**rate))  # type: ignore[arg-type]


def seconds_off(works: Clockwork, outcomes: Sequence[object]) -> dict[str, float]:
    """Return how long each VM was off that was stopped and started again."""
    stops = {change.vm: at for at, change in works.begun if isinstance(change, PowerOff)}
    starts = {change.vm: at for at, change in works.begun if isinstance(change, PowerOn)}
    done = (each for each in outcomes if isinstance(each, Done))
    took = {each.change.vm: each.seconds for each in done if isinstance(each.change, PowerOn)}
    return {vm: starts[vm] + took[vm] - at for vm, at in stops.items() if vm in took}


FOLDER = CreateFolder(path="train/night", marks=Marks(cluster="train"))
RULE = MakeRule(cluster=CLUSTER, name="vsml-train", vms=("a", "b", "c"))


def upgrade(vm: str) -> UpgradeHardware:
    return UpgradeHardware(vm=vm, version=20)


def mac(vm: str) -> NewMac:
    return NewMac(vm=vm, key=1, mac="00:50:56:00:00:01")


def clone(vm: str, folder: str = "train/night") -> CloneVm:
    plan = provision(cluster(1), FakeVCenter(quad_8u3()), dry_run=True).plan
    made = next(change for change in plan.changes if isinstance(change, CloneVm))
    return CloneVm(**{name: getattr(made, name) for name in made.__slots__} | {"vm": vm, "folder": folder})


def test_vms_are_changed_side_by_side_and_each_in_order() -> None:
    works = Clockwork()
    outcomes = walk([upgrade("a"), upgrade("b"), mac("a"), mac("b"), PowerOn(vm="a"), PowerOn(vm="b")], works)
    assert works.clock.now() == 3.0
    assert [when for when, _ in works.begun] == [0, 0, 1, 1, 2, 2]
    assert [type(change) for _, change in works.begun if subject(change) == "a"] == [UpgradeHardware, NewMac, PowerOn]
    assert all(isinstance(outcome, Done) for outcome in outcomes)


def test_a_slow_vm_does_not_hold_up_the_others() -> None:
    works = Clockwork(takes=lambda change: 100.0 if change == upgrade("a") else 1.0)
    walk([upgrade("a"), upgrade("b"), PowerOn(vm="a"), PowerOn(vm="b")], works)
    assert {change: when for when, change in works.begun}[PowerOn(vm="b")] == 1.0


def test_never_more_at_once_than_asked() -> None:
    works = Clockwork()
    walk([PowerOn(vm=f"node-{number}") for number in range(10)], works, parallel=3)
    assert works.most == 3
    assert works.clock.now() == 4.0


def test_a_vm_that_was_begun_is_finished_before_the_next_begins() -> None:
    works = Clockwork()
    walk([upgrade("a"), upgrade("b"), mac("a"), mac("b")], works, parallel=1)
    assert [subject(change) for _, change in works.begun] == ["a", "a", "b", "b"]


def test_a_change_to_the_site_waits_for_all_and_all_wait_for_it() -> None:
    works = Clockwork(takes=lambda change: 5.0 if change == upgrade("b") else 1.0)
    walk([upgrade("a"), upgrade("b"), RULE, PowerOn(vm="a"), PowerOn(vm="b")], works)
    assert [(when, change) for when, change in works.begun][2:] == [
        (5.0, RULE),
        (6.0, PowerOn(vm="a")),
        (6.0, PowerOn(vm="b")),
    ]


def test_a_failure_leaves_out_the_rest_of_that_vm_only(golden: Golden) -> None:
    works, answers = Clockwork(bad=lambda change: change == upgrade("a")), Told()
    outcomes = walk([upgrade("a"), upgrade("b"), mac("a"), PowerOn(vm="a"), PowerOn(vm="b")], works, answers)
    assert [outcome.change for outcome in outcomes if isinstance(outcome, Done)] == [upgrade("b"), PowerOn(vm="b")]
    assert [outcome.change for outcome in outcomes if isinstance(outcome, Failed)] == [upgrade("a")]
    because = {outcome.because for outcome in outcomes if isinstance(outcome, Skipped)}
    golden(because)
    assert [type(event) for event in answers if getattr(event, "change", None) == PowerOn(vm="a")] == [Skipped]
    assert [type(event) for event in answers if getattr(event, "change", None) == upgrade("a")] == [Started, Failed]


def checked(changes: Sequence[Change], missing: dict[str, list[Change]], works: Clockwork) -> list[tuple[str, ...]]:
    """Carry out changes with a check that finds each of these missing once; return who was asked about, each time."""
    asked: list[tuple[str, ...]] = []

    def check(vms: Collection[str]) -> Mapping[str, Sequence[Change]]:
        asked.append(tuple(vms))
        return {vm: missing.pop(vm) for vm in vms if vm in missing}

    PlanExecutor(works, Told(), works.clock, ApplyLimits(), check=check).carry_out(changes)
    return asked


def test_each_vm_is_checked_when_it_is_ready_and_waits_for_no_other() -> None:
    works = Clockwork(takes=lambda change: 9.0 if change == upgrade("b") else 1.0)
    asked = checked([upgrade("a"), upgrade("b"), PowerOn(vm="a"), PowerOn(vm="b")], {}, works)
    assert asked == [("a",), ("b",)]
    assert {change: when for when, change in works.begun}[PowerOn(vm="a")] == 1.0


def test_what_a_check_finds_is_done_and_checked_again_before_power_on() -> None:
    works = Clockwork()
    asked = checked([upgrade("a"), PowerOn(vm="a"), PowerOn(vm="b")], {"a": [mac("a")]}, works)
    assert asked == [("b",), ("a",), ("a",)]
    assert [change for _, change in works.begun if subject(change) == "a"] == [upgrade("a"), mac("a"), PowerOn(vm="a")]


def test_vms_that_are_started_after_others_are_made_after_them_and_checked_while_those_start() -> None:
    works = Clockwork()
    asked: list[tuple[tuple[str, ...], int]] = []  # and how much had begun by then

    def check(vms: Collection[str]) -> Mapping[str, Sequence[Change]]:
        asked.append((tuple(vms), len(works.begun)))
        return {}

    follows = {"a": frozenset({"b"})}
    executor = PlanExecutor(works, Told(), works.clock, ApplyLimits(), check=check, start_after=follows)
    executor.carry_out([clone("a"), clone("b"), PowerOn(vm="a"), PowerOn(vm="b")])
    assert works.begun == [(0.0, clone("b")), (0.0, clone("a")), (1.0, PowerOn(vm="b")), (2.0, PowerOn(vm="a"))]
    assert asked == [(("b",), 2), (("a",), 3)]


def test_nobody_is_checked_before_the_rule_stands() -> None:
    works = Clockwork()
    assert checked([upgrade("a"), RULE, PowerOn(vm="a"), PowerOn(vm="b")], {}, works) == [("a", "b")]


def test_a_vm_that_came_to_grief_is_not_checked() -> None:
    works = Clockwork(bad=lambda change: change == upgrade("a"))
    assert checked([upgrade("a"), upgrade("b"), RULE, PowerOn(vm="a"), PowerOn(vm="b")], {}, works) == [("b",)]


def test_without_its_folder_nothing_is_cloned(golden: Golden) -> None:
    works = Clockwork(bad=lambda change: change == FOLDER)
    changes: list[Change] = [FOLDER, clone("a"), PowerOn(vm="a"), PowerOn(vm="elsewhere")]
    outcomes = walk(changes, works)
    assert [change for _, change in works.begun] == [FOLDER, PowerOn(vm="elsewhere")]
    golden({outcome.because for outcome in outcomes if isinstance(outcome, Skipped)})


def test_a_folder_that_is_not_the_lost_one_is_no_reason() -> None:
    works = Clockwork(bad=lambda change: change == FOLDER)
    other = clone("a", folder="train/nightly")
    walk([FOLDER, other], works)
    assert [change for _, change in works.begun] == [FOLDER, other]


def test_a_folder_stays_when_a_vm_in_it_does(golden: Golden) -> None:
    works = Clockwork(bad=lambda change: change == DeleteVm(vm="a"))
    outcomes = walk([PowerOff(vm="a"), DeleteVm(vm="a"), DeleteVm(vm="b"), DeleteFolder(path="train")], works)
    left = [outcome for outcome in outcomes if isinstance(outcome, Skipped)]
    golden([(each.change, each.because) for each in left])


def test_a_change_that_never_ends_is_given_up(golden: Golden) -> None:
    works = Clockwork(takes=lambda change: 1e9 if change == PowerOn(vm="a") else 1.0)
    outcomes = walk([PowerOn(vm="a"), PowerOn(vm="b")], works, change_s=60.0)
    late = next(outcome for outcome in outcomes if isinstance(outcome, Failed))
    assert late.error.code == "task.timeout"
    golden(late.error)
    assert works.clock.now() == 60.0
    assert any(isinstance(outcome, Done) and outcome.change == PowerOn(vm="b") for outcome in outcomes)


def test_a_clone_may_take_longer_than_other_changes() -> None:
    works = Clockwork(takes=lambda _change: 3000.0)
    outcomes = walk([clone("a"), PowerOn(vm="b")], works)
    assert isinstance(outcomes[0], Failed)
    assert outcomes[0].change == PowerOn(vm="b")
    assert isinstance(outcomes[1], Done)


def test_time_in_vcenters_queue_is_not_counted(golden: Golden) -> None:
    works = Clockwork(takes=lambda _change: 50.0, queue=lambda change: 5000.0 if subject(change) == "b" else 0.0)
    answers = Told()
    outcomes = walk([PowerOn(vm="a"), PowerOn(vm="b")], works, answers, change_s=60.0)
    assert [type(outcome) for outcome in outcomes] == [Done, Done]
    golden([event for event in answers if getattr(event, "change", None) == PowerOn(vm="b")])


def test_what_is_queued_is_given_up_after_a_day(golden: Golden) -> None:
    works = Clockwork(queue=lambda change: 1e9 if change == PowerOn(vm="a") else 0.0)
    outcomes = walk([PowerOn(vm="a"), PowerOn(vm="b")], works)
    late = next(outcome for outcome in outcomes if isinstance(outcome, Failed))
    assert late.error.code == "task.timeout"
    golden(late.error)
    assert works.clock.now() == 86_400.0


def test_what_hangs_after_its_time_in_the_queue_is_given_up() -> None:
    works = Clockwork(takes=lambda _change: 1e9, queue=lambda _change: 5000.0)
    (late,) = walk([PowerOn(vm="a")], works, change_s=60.0)
    assert isinstance(late, Failed)
    assert works.clock.now() == 5060.0


OFF: list[Change] = [PowerOff(vm="a"), PowerOff(vm="b")]
ON: list[Change] = [PowerOn(vm="a"), PowerOn(vm="b")]
RESTARTS: dict[str, tuple[list[Change], dict[str, float]]] = {
    "alone": ([*OFF, *ON], {"a": 1200, "b": 1200}),
    "with more to do to one": ([mac("a"), *OFF, upgrade("a"), mac("a"), *ON], {"a": 2400, "b": 1200}),
    "with a clone that the rule waits for": ([clone("c"), *OFF, RULE, *ON], {"a": 4800, "b": 4800}),
    "where one is deleted": ([*OFF, DeleteVm(vm="b"), PowerOn(vm="a")], {"a": 1200}),
    "where one was off": ([OFF[0], upgrade("b"), *ON], {"a": 1200}),
}


@pytest.mark.parametrize("name", RESTARTS)
@pytest.mark.parametrize("share", [1.0, 0.7, 0.3, 0.0])
@pytest.mark.parametrize("slow", ["a", "b", "c", None])
def test_no_vm_is_off_for_longer_than_is_said_before(name: str, share: float, slow: str | None) -> None:
    changes, most = RESTARTS[name]
    limits = ApplyLimits()
    assert limits.seconds_off(changes) == most
    works = Clockwork(takes=lambda each: (limits.limit(each) - 1) * (1.0 if subject(each) == slow else share) + 0.001)
    off = seconds_off(works, walk(changes, works))
    assert off.keys() == most.keys()
    assert all(off[vm] <= most[vm] for vm in most)
    assert share < 1 or all(off[vm] > most[vm] - 10 for vm in most), "and the limits alone would allow it"


def test_more_vms_than_are_changed_at_once_wait_for_each_other_before_a_rule() -> None:
    stopped = [PowerOff(vm=f"{number}") for number in range(5)]
    started = [PowerOn(vm=each.vm) for each in stopped]
    off = ApplyLimits(parallel=2).seconds_off([*stopped, RULE, *started])
    assert set(off.values()) == {3 * 600 + 600 + 600}


def test_a_clones_time_counts_from_the_end_of_the_clone_before_it() -> None:
    """A vCenter may call a clone running that waits for its host's turn."""
    works = Clockwork(takes=lambda change: 3000.0 * int(subject(change) or 0))
    outcomes = walk([clone("1"), clone("2"), clone("3")], works)
    assert [type(outcome) for outcome in outcomes] == [Done] * 3
    hung = Clockwork(takes=lambda change: 1e9 if subject(change) == "2" else 3000.0)
    assert [type(outcome) for outcome in walk([clone("1"), clone("2")], hung)] == [Done, Failed]
    assert hung.clock.now() == 6600.0


def test_an_interrupt_names_what_goes_on_without_us() -> None:
    works = Clockwork(takes=lambda change: 9.0 if subject(change) == "a" else 1.0, interrupt_at=5.0)
    with pytest.raises(Interrupted) as interrupt:
        walk([PowerOn(vm="a"), PowerOn(vm="b"), RULE], works)
    assert interrupt.value.running == (PowerOn(vm="a"),)
    assert [outcome.change for outcome in interrupt.value.outcomes] == [PowerOn(vm="b")]
    assert RULE not in [change for _, change in works.begun]


def test_an_interrupt_while_a_change_is_begun_names_it_too() -> None:
    class Sudden(Clockwork):
        def start(self, changes: Sequence[Change]) -> tuple[TaskHandle, ...]:
            raise KeyboardInterrupt

    with pytest.raises(Interrupted) as interrupt:
        walk([PowerOn(vm="a")], Sudden())
    assert interrupt.value.running == (PowerOn(vm="a"),)


def test_an_interrupted_run_gives_its_lock_back_and_the_next_one_finishes() -> None:
    lab = FakeVCenter(quad_8u3(), takes=lambda _change: 2.0)

    class Impatient(Told):
        def __call__(self, event: object, /) -> None:
            if isinstance(event, Done) and isinstance(event.change, CloneVm) and event.change.vm == "node-2":
                raise KeyboardInterrupt

    with pytest.raises(Interrupted) as interrupt:
        provision(cluster(4), lab, event=Impatient())
    assert [subject(change) for change in interrupt.value.running] == ["node-3", "node-4"]
    assert not lab.locked
    lab.mend()
    assert provision(cluster(4), lab).done


def test_progress_is_told_once_for_each_new_number() -> None:
    works, answers = Clockwork(halfway=True), Told()
    walk([PowerOn(vm="a")], works, answers)
    assert [type(event) for event in answers] == [Started, Progressed, Done]
    assert answers[1] == Progressed(change=PowerOn(vm="a"), percent=50)


def test_64_vms_take_no_longer_than_their_longest_chain() -> None:
    racks = [r750xa(number) for number in range(1, 17)]
    picture = site(
        racks, [each for each in quad_8u3(template_version=20).vms if each.template], about="", api_version="8.0.3.0"
    )
    lab = FakeVCenter(
        picture, takes=lambda change: {CloneVm: 2.0, PowerOn: 1.0}.get(type(change), 0.0), clock=FakeClock()
    )
    report = provision(cluster(nodes(64, cpus=8)), lab, parallel=64)
    assert report.done
    # the VMs of a host's second NUMA node start once those of the first have their GPUs
    assert lab.clock.now() == 4.0
    # The plan's, under the lock, at the end; the VMs that are started first are read back first, the others meanwhile.
    assert (lab.looks, lab.reads) == (3, 2)
