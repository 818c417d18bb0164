"""Carries out a plan: many VMs side by side, each VM's changes in order, a change to the site alone.

Knows which change waits for which and what a failure takes with it; how a change is made is the port's business.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import field, replace
from itertools import groupby
from typing import TYPE_CHECKING, TypeAlias

from vsphere_ml.core.errors import VsmlError, VSphereError
from vsphere_ml.core.plan.changes import (
    CloneVm,
    CreateFolder,
    DeleteFolder,
    DeleteVm,
    DeployTemplate,
    MakeRule,
    PowerOff,
    PowerOn,
    subject,
)
from vsphere_ml.core.plan.describe import describe, is_off
from vsphere_ml.core.plan.outcome import Done, Failed, Interrupted, Skipped, left_off
from vsphere_ml.core.ports.events import Dequeued, Progressed, Queued, Started
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from vsphere_ml.core.plan.changes import Change
    from vsphere_ml.core.plan.outcome import Outcome
    from vsphere_ml.core.ports.events import Listener
    from vsphere_ml.core.ports.vcenter import Clock, TaskHandle, Update, VCenter


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyLimits:
    """How much is done at once, and how long one change may take once vCenter runs it, or wait until it does.

    vCenter runs about 640 operations before it queues requests
    (https://blogs.vmware.com/performance/2021/02/vcenter-limits-for-tasks-running-at-the-same-time.html), so 64 leave
    nine tenths to everybody else. What exceeds a host's or a datastore's limit is queued, not refused.
    """

    parallel: int = 64
    clone_s: float = 3600.0
    change_s: float = 600.0
    queue_s: float = 86_400.0

    def limit(self, change: Change) -> float:
        if isinstance(change, DeployTemplate):  # by the link from here, or as long as a library's files take
            return self.queue_s
        return self.clone_s if isinstance(change, CloneVm) else self.change_s

    def seconds_off(self, changes: Iterable[Change]) -> dict[str, float]:
        """Return for how many seconds at most each VM is off that these changes stop and start again.

        That is the sum of the limits of what is done from its stop until it runs. The guest's shutdown is part of the
        stop, and that ESXi locks all of a large reserved memory is part of the start. Before a change to the site the
        other VMs are waited for. On top comes what has no limit or is not foreseen: vCenter's queue, VMs of its host
        that are started before it, settings that have to be set again, and the boot of the guest.
        """
        off: dict[str, float] = {}
        stopped: dict[str, float] = {}
        begun = 0.0
        for part in _parts(changes):
            chains = _chains(part)
            for chain in chains:
                self._follow(chain, begun, stopped, off)
            stopped = {vm: min(at, begun) for vm, at in stopped.items()}  # what came before its stop may take no time
            longest = max(sum(map(self.limit, chain)) for chain in chains)
            begun += math.ceil(len(chains) / self.parallel) * longest
        return off

    def _follow(self, chain: Iterable[Change], at: float, stopped: dict[str, float], off: dict[str, float]) -> None:
        """Note when a VM is stopped and how long it is off, where each change takes as long as it may."""
        for change in chain:
            if isinstance(change, PowerOff):
                stopped[change.vm] = at
            at += self.limit(change)
            if isinstance(change, PowerOn) and change.vm in stopped:
                off[change.vm] = at - stopped.pop(change.vm)


def apply(
    changes: Iterable[Change], vcenter: VCenter, *, notify: Listener, clock: Clock, rate: ApplyLimits
) -> tuple[Outcome, ...]:
    """Carry out the changes and return what became of each.

    A VM's failure leaves out only the rest of that VM. Raises Interrupted on Ctrl-C.
    """
    walk = PlanExecutor(vcenter, notify, clock, rate)
    walk.carry_out(changes)
    return tuple(walk.outcomes)


def _parts(changes: Iterable[Change]) -> Iterator[tuple[Change, ...]]:
    """Yield runs of changes to VMs, and each change to the site as a part of its own."""
    for is_site, run in groupby(changes, key=lambda change: subject(change) is None):
        if is_site:
            yield from ((change,) for change in run)
        else:
            yield tuple(run)


@dataclass(slots=True)
class _Running:
    task: TaskHandle
    change: Change
    rest: deque[Change]  # what follows on the same VM
    since: float
    counted_from: float  # when it was queued in vCenter, or began to run: what its limit is counted from
    queued: bool = False
    percent: int | None = None


Check: TypeAlias = "Callable[[Collection[str]], Mapping[str, Sequence[Change]]]"


def _nothing(_vms: Collection[str]) -> Mapping[str, Sequence[Change]]:
    return {}


@dataclass(slots=True)
class PlanExecutor:
    """Carries out changes, in one go or in several; what failed is remembered from one to the next."""

    vcenter: VCenter
    notify: Listener
    clock: Clock
    limits: ApplyLimits
    outcomes: list[Outcome] = field(default_factory=list)
    in_flight: dict[int, _Running] = field(default_factory=dict)
    check: Check = _nothing  # says what VMs that are about to be powered on still need
    beginning: tuple[Change, ...] = ()  # may have reached vCenter although no ticket came back
    broken: dict[str, str] = field(default_factory=dict)  # VM → why nothing more is done to it
    lost: list[tuple[Change, str]] = field(default_factory=list)  # changes to the site that were not made
    restarting: set[str] = field(default_factory=set)  # VMs that are started again although a change of theirs failed
    start_after: Mapping[str, frozenset[str]] = field(default_factory=dict)  # VM → VMs that are started before it
    unstarted: set[str] = field(default_factory=set)  # VMs whose power-on is still to come
    checked: set[str] = field(default_factory=set)  # of these, the VMs that were found complete

    @property
    def running(self) -> tuple[Change, ...]:
        return (*(run.change for run in self.in_flight.values()), *self.beginning)

    def carry_out(self, changes: Iterable[Change]) -> None:
        """Carry out these changes. Raises Interrupted on Ctrl-C."""
        try:
            for part in _parts(changes):
                self._carry_out(part)
        except KeyboardInterrupt as interrupt:
            raise Interrupted(self.running, tuple(self.outcomes)) from interrupt
        except VsmlError as error:  # the connection, most often: what vCenter has begun goes on there
            error.details += tuple(f"may still be at work in vCenter: {describe(change)}" for change in self.running)
            error.details += tuple(is_off(vm) for vm in self.off)
            raise

    @property
    def off(self) -> tuple[str, ...]:
        """The VMs that were stopped here and have not been started again."""
        return left_off(self.outcomes)

    def restart_unchanged(self) -> None:
        """Start the VMs again that were stopped for a change that failed, as long as nothing of them was changed.

        One of which a part was changed, or may still be, stays off. Raises Interrupted on Ctrl-C.
        """
        unchanged = [vm for vm in self.off if vm in self.broken and self._is_unchanged(vm)]
        self.outcomes = [each for each in self.outcomes if not _is_start_left_out(each, unchanged)]
        self.restarting.update(unchanged)
        self.carry_out(PowerOn(vm=vm) for vm in unchanged)

    def _is_unchanged(self, vm: str) -> bool:
        """Return whether since its stop no change of a VM was made, and none may still be under way in vCenter.

        One that is to be deleted is not wanted back.
        """
        its = [each for each in self.outcomes if subject(each.change) == vm]
        stop = next(at for at, each in enumerate(its) if isinstance(each.change, PowerOff))
        return not any(
            isinstance(each, Done)
            or isinstance(each.change, DeleteVm)
            or (isinstance(each, Failed) and each.error.code == _OVERDUE)
            for each in its[stop + 1 :]
        )

    def give_up(self, vm: str, because: str) -> None:
        """Do nothing more to this VM; what would follow is left out for this reason."""
        self.broken.setdefault(vm, because)

    def _carry_out(self, part: tuple[Change, ...]) -> None:
        """Carry out the chains of one part, so many at once as the pace allows."""
        self.unstarted = {change.vm for change in part if isinstance(change, PowerOn)}
        # VMs that are started first are made first: those that follow have until then to come.
        waiting = deque(sorted(_chains(part), key=lambda chain: len(self._before(chain))))
        while waiting or self.in_flight:
            self._check(waiting)
            self._begin(waiting)
            self._check_those_that_wait(waiting)
            self._begin(waiting)
            if self.in_flight:
                waiting.extendleft(reversed(self._settle(self._next_timeout())))

    def _next(self, waiting: deque[deque[Change]]) -> deque[Change] | None:
        """Take the first chain whose next change may begin: no power-on before those that come before it."""
        for position, chain in enumerate(waiting):
            if not self._must_wait(chain[0]):
                del waiting[position]
                return chain
        return None

    def _before(self, chain: deque[Change]) -> frozenset[str]:
        return self.start_after.get(subject(chain[0]) or "", frozenset())

    def _must_wait(self, change: Change) -> bool:
        if not isinstance(change, PowerOn):
            return False
        return any(vm in self.unstarted and vm not in self.broken for vm in self.start_after.get(change.vm, ()))

    def _check(self, waiting: Iterable[deque[Change]]) -> None:
        """Put what VMs still need before their power-on."""
        self._check_chains([chain for chain in waiting if not self._must_wait(chain[0])])

    def _check_those_that_wait(self, waiting: deque[deque[Change]]) -> None:
        """Check VMs that must wait for others while those are at work, once their changes have reached vCenter."""
        if self._unchecked(waiting) and self.in_flight:
            waiting.extend(self._settle(0.0))
        self._check_chains(waiting)

    def _unchecked(self, chains: Iterable[deque[Change]]) -> dict[str, deque[Change]]:
        """Return the VMs that come to their power-on and were not checked.

        One that is started again after a failure has to be as it was, and is not checked.
        """
        starting = {chain[0].vm: chain for chain in chains if isinstance(chain[0], PowerOn)}
        return {vm: chain for vm, chain in starting.items() if vm not in self.broken and vm not in self.checked}

    def _check_chains(self, chains: Iterable[deque[Change]]) -> None:
        if not (unchecked := self._unchecked(chains)):
            return
        self.checked.update(unchecked)
        for vm, missing in self.check(tuple(unchecked)).items():
            unchecked[vm].extendleft(reversed(missing))
            self.checked.discard(vm)

    def _begin(self, waiting: deque[deque[Change]]) -> None:
        """Start the next change of each chain that may go on, as many as the limit leaves."""
        chosen: list[tuple[Change, deque[Change]]] = []
        while len(self.in_flight) + len(chosen) < self.limits.parallel and (chain := self._next(waiting)) is not None:
            if (change := self._take_change(chain)) is not None:
                chosen.append((change, chain))
        if chosen:
            self._start(chosen)

    def _take_change(self, chain: deque[Change]) -> Change | None:
        """Take the first change of a chain that can be made, leaving out those before it; None when there is none."""
        while chain:
            change = _without_failed_vms(chain.popleft(), self.broken)
            missing = self._missing(change)
            if missing is None:
                return change
            self._leave_out(change, missing)
        return None

    def _start(self, chosen: Sequence[tuple[Change, deque[Change]]]) -> None:
        self.beginning = tuple(change for change, _ in chosen)
        self.checked.difference_update(change.vm for change in self.beginning if isinstance(change, PowerOn))
        since = self.clock.now()
        for task, (change, rest) in zip(self.vcenter.start(self.beginning), chosen, strict=True):
            self.in_flight[task.id] = _Running(task, change, rest, since, counted_from=since)
        self.beginning = ()
        for change, _ in chosen:
            self.notify(Started(change=change))

    def _settle(self, timeout_s: float) -> list[deque[Change]]:
        """Wait for news; return the chains that can go on."""
        tasks = [run.task for run in self.in_flight.values()]
        updates = self.vcenter.wait(tasks, timeout_s)
        going_on = [chain for update in updates if (chain := self._take(update)) is not None]
        self._give_up_overdue()
        return going_on

    def _take(self, update: Update) -> deque[Change] | None:
        run = self.in_flight.get(update.task.id)
        if run is None:
            return None
        if not update.done:
            self._note_queue(run, queued=update.queued)
            self._note_progress(run, update.percent)
            return None
        del self.in_flight[update.task.id]
        self._give_turn(run.change)
        if update.error is not None:
            self._fail(run, update.error)
            return None
        if isinstance(run.change, PowerOn):
            self.unstarted.discard(run.change.vm)
        self._note(Done(change=run.change, seconds=self.clock.now() - run.since))
        return run.rest or None

    def _note(self, outcome: Outcome) -> None:
        self.outcomes.append(outcome)
        self.notify(outcome)

    def _note_queue(self, run: _Running, *, queued: bool) -> None:
        """Count a change's limit anew when vCenter has queued its task, or begins to run it."""
        if queued != run.queued:
            run.queued, run.counted_from = queued, self.clock.now()
            self.notify(Queued(change=run.change) if queued else Dequeued(change=run.change))

    def _give_turn(self, ended: Change) -> None:
        """Count the clones' limits from the end of one of them.

        No public text says whether a clone that waits for its host's limit is queued or called running.
        """
        if isinstance(ended, CloneVm):
            for run in self.in_flight.values():
                if isinstance(run.change, CloneVm) and not run.queued:
                    run.counted_from = self.clock.now()

    def _note_progress(self, run: _Running, percent: int | None) -> None:
        if percent is not None and percent != run.percent:
            run.percent = percent
            self.notify(Progressed(change=run.change, percent=percent))

    def _fail(self, run: _Running, error: VsmlError) -> None:
        self._note(Failed(change=run.change, error=error))
        self._lose(run.change, f"{describe(run.change)} failed")
        for change in run.rest:
            self._leave_out(change, f"{describe(run.change)} failed")

    def _leave_out(self, change: Change, because: str) -> None:
        self._note(Skipped(change=change, because=because))
        self._lose(change, because)

    def _lose(self, change: Change, because: str) -> None:
        vm = subject(change)
        if vm is not None:
            self.broken.setdefault(vm, because)
        elif not _is_needless(change):
            self.lost.append((change, because))

    def _missing(self, change: Change) -> str | None:
        """Return why a change must not be made, because of what came to grief before it."""
        vm = subject(change)
        if vm in self.restarting:
            return None
        if vm in self.broken:
            return self.broken[vm]
        if isinstance(change, DeleteFolder) and self.broken:
            return "it still holds " + ", ".join(self.broken)
        if _is_needless(change):
            return "fewer than two of its VMs are there"
        return next((because for lost, because in self.lost if _needs(change, lost)), None)

    def _next_timeout(self) -> float:
        return max(0.0, min(run.counted_from + self._limit(run) for run in self.in_flight.values()) - self.clock.now())

    def _limit(self, run: _Running) -> float:
        return self.limits.queue_s if run.queued else self.limits.limit(run.change)

    def _give_up_overdue(self) -> None:
        now = self.clock.now()
        for run in tuple(self.in_flight.values()):
            if now - run.counted_from >= self._limit(run):
                del self.in_flight[run.task.id]
                self._fail(run, _timeout_error(run, self._limit(run)))


_PAIR = 2
_OVERDUE = "task.timeout"


def _is_start_left_out(outcome: Outcome, vms: Collection[str]) -> bool:
    return isinstance(outcome, Skipped) and isinstance(outcome.change, PowerOn) and outcome.change.vm in vms


def _is_needless(change: Change) -> bool:
    """Return whether this is a rule with nobody to keep apart."""
    return isinstance(change, MakeRule) and len(change.vms) < _PAIR


def _chains(part: tuple[Change, ...]) -> list[deque[Change]]:
    chains: dict[str | None, deque[Change]] = {}
    for change in part:
        chains.setdefault(subject(change), deque()).append(change)
    return list(chains.values())


def _without_failed_vms(change: Change, broken: dict[str, str]) -> Change:
    """Return a rule without the VMs that did not come to be, any other change as it is."""
    if isinstance(change, MakeRule):
        return replace(change, vms=tuple(vm for vm in change.vms if vm not in broken))
    return change


def _needs(change: Change, lost: Change) -> bool:
    match change, lost:
        case CloneVm(), CreateFolder():
            return f"{change.folder}/".startswith(f"{lost.path}/")
        case CloneVm(), DeployTemplate():
            return True
        case DeployTemplate(), CreateFolder():
            return f"{change.folder}/".startswith(f"{lost.path}/")
        case CreateFolder(), CreateFolder():
            return change.path.startswith(f"{lost.path}/")
        case PowerOn(), MakeRule():
            # DRS may choose another host at power-on, and would not know which VMs must not share one
            return change.vm in lost.vms
        case _:
            return False


def _timeout_error(run: _Running, limit_s: float) -> VSphereError:
    late = "has been queued in vCenter" if run.queued else "has not ended within"
    return VSphereError(
        f"{describe(run.change)} {late} {limit_s:.0f} s; vCenter may still be at it",
        code=_OVERDUE,
        target=subject(run.change) or "",
        hint="look at the task in vCenter; when it has ended, run the same command again",
    )
