"""Carries started changes to their end: each is a generator of steps, all of them watched by one collector.

A step yields what it waits for; nobody polls object by object, and no change has a thread of its own.
"""

from __future__ import annotations

import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import field
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

from pyVmomi import vim, vmodl

from vsphere_ml.core.errors import VsmlError, VSphereError
from vsphere_ml.core.ports.vcenter import TaskHandle, Update
from vsphere_ml.lazy_dataclass import dataclass
from vsphere_ml.vsphere.connection.endpoint import BROKEN
from vsphere_ml.vsphere.inventory.collect import collect_objects, reference

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence
    from concurrent.futures import Future

    from vsphere_ml.core.plan.changes import Change
    from vsphere_ml.vsphere.connection.session import Session

_P: Any = vmodl.query.PropertyCollector
_LONGEST_WAIT_S = 15  # of one call, kept well below the connection's own timeout
PROGRESS_S = 2  # so long without a task that ends, and progress is asked for
_CALLERS = 4  # first steps under way at once: while vCenter works on one, the next is written
_RUN_AGAIN = "run the same command again: it looks first and finishes what is missing"
# Not its progress: vCenter would answer a wait at each step of each task.
_TASK = ("info.state", "info.error", "info.result")


@dataclass(frozen=True, slots=True)
class AwaitedState:
    """What a step waits for: a task's end, or one of some states of another object until a deadline passes.

    A state that has come is sent, False when the deadline has passed.
    """

    object: Any
    paths: tuple[str, ...] = _TASK
    states: tuple[str, ...] = ()
    deadline: float | None = None  # of time.monotonic

    @property
    def kind(self) -> Any:
        return type(self.object) if self.states else vim.Task


@dataclass(frozen=True, slots=True)
class StepProgress:
    """Yielded by a step that works by itself, in parts: how far it is, when that is known."""

    percent: int | None


# Yielded by a step that ends the change for its ticket; the steps after it are taken by a thread of their own.
DONE = AwaitedState(None, ())


@dataclass(slots=True)
class _Run:
    """A started change: its steps, what they wait for now, and what was seen of that."""

    task: TaskHandle
    steps: Generator[AwaitedState | StepProgress, Any, None]
    awaited: AwaitedState | None = None
    seen: dict[str, Any] = field(default_factory=dict)
    filter: _Filter | None = None
    percent: int | None = None
    queued: bool = False
    news: list[Update] = field(default_factory=list)
    over: bool = False
    silences: int = 0  # times that vCenter was asked anew and said nothing of what the step waits for


@dataclass(slots=True)
class _Filter:
    """A collector's filter over a batch of objects, and how many of them are still waited for."""

    handle: Any
    open: int
    only_tasks: bool  # which have no news once they have ended


class TaskRunner:
    """The changes under way. `explain` turns a fault into the error that its change's ticket carries."""

    def __init__(self, session: Session, explain: Callable[[BaseException, Change], VsmlError]) -> None:
        self._session, self._explain = session, explain
        self._numbers = count(1)
        self._runs: dict[TaskHandle, _Run] = {}
        self._by_object: dict[str, _Run] = {}
        self._unwatched: list[_Run] = []
        self._working: deque[_Run] = deque()  # whose next step waits for nothing
        self._later: deque[Future[None]] = deque()
        self._afterwards = ThreadPoolExecutor(max_workers=1, thread_name_prefix="vcenter-afterwards")
        self._callers = ThreadPoolExecutor(max_workers=_CALLERS, thread_name_prefix="vcenter")
        self._beginning: deque[tuple[_Run, Future[AwaitedState | StepProgress]]] = deque()
        self._collector: Any = None
        self._generation = 0
        self._version = ""
        self._collector_lost = False
        self._quiet_s = 0.0  # how long was waited since vCenter's last news

    def start(self, change: Change, steps: Generator[AwaitedState | StepProgress, Any, None]) -> TaskHandle:
        """Take the change's first step and return; whatever fails is reported by `wait`."""
        task = TaskHandle(next(self._numbers), change)
        run = self._runs[task] = _Run(task, steps)
        self._beginning.append((run, self._callers.submit(next, steps)))
        return task

    def wait(self, tasks: Sequence[TaskHandle], timeout_s: float) -> tuple[Update, ...]:
        """Return news of these tickets, as soon as there are any."""
        end = time.monotonic() + timeout_s
        self._begun()
        while True:
            news = self._news(tasks)
            left = end - time.monotonic()
            if news or left <= 0 or not (self._by_object or self._working):
                return news
            if self._working:
                run = self._working.popleft()
                self._step(run, partial(next, run.steps))
            else:
                self._session.read(partial(self._watch, left))

    def _begun(self) -> None:
        """Take note of the first steps: they are calls that only begin a task, so all of them end soon."""
        while self._beginning:
            run, call = self._beginning[0]
            self._step(run, call.result)
            self._beginning.popleft()

    def finish(self) -> None:
        """Take all the steps that were put off."""
        self._begun()
        while self._later:
            self._later.popleft().result()

    def _news(self, tasks: Sequence[TaskHandle]) -> tuple[Update, ...]:
        found: list[Update] = []
        for task in tasks:
            run = self._runs.get(task)
            if run is not None and run.news:
                found += run.news
                run.news = []
                if run.over:
                    del self._runs[task]
        return tuple(found)

    def _step(self, run: _Run, advance: Callable[[], AwaitedState | StepProgress]) -> None:
        """Take one step; a step that ends, or fails, ends the change."""
        self._forget(run)
        try:
            taken = advance()
        except StopIteration:
            self._over(run, None)
        except (VsmlError, vmodl.MethodFault) as fault:
            self._over(run, self._explain(fault, run.task.change))
        else:
            if isinstance(taken, StepProgress):
                self._working.append(run)
                self._note_percent(run, taken.percent, queued=False)
                return
            if taken is DONE:
                self._later.append(self._afterwards.submit(_take_last, run.steps))
                self._over(run, None)
                return
            run.awaited, run.seen, run.percent, run.silences = taken, {}, None, 0
            self._by_object[reference(run.awaited.object)] = run
            self._unwatched.append(run)

    def _over(self, run: _Run, error: VsmlError | None) -> None:
        run.over = True
        run.news.append(Update(task=run.task, done=True, error=error))

    def _forget(self, run: _Run) -> None:
        if run.awaited is None:
            return
        self._by_object.pop(reference(run.awaited.object), None)
        run.awaited = None
        if run in self._unwatched:
            self._unwatched.remove(run)
        if run.filter is not None:
            run.filter.open -= 1
            if run.filter.open == 0 and not run.filter.only_tasks and self._generation == self._session.generation:
                # A filter that stays reports what nobody waits for; a step that is not taken is lost.
                with suppress(vmodl.MethodFault, *BROKEN):
                    run.filter.handle.Destroy()
            run.filter = None

    def _watch(self, left: float) -> None:
        try:
            self._take_news(left)
        except vmodl.fault.ManagedObjectNotFound as fault:
            self._lose_collector(fault)
        else:
            self._collector_lost = False

    def _lose_collector(self, fault: Any) -> None:
        """Let the next wait make a new collector; VSphereError `vsphere.task-lost` when that one was new already."""
        self._collector = None
        if self._collector_lost:
            raise VSphereError(
                "vCenter no longer knows the collector that watches its tasks; whether they ended well is not known",
                code="vsphere.task-lost",
                target="PropertyCollector",
                hint=_RUN_AGAIN,
            ) from fault
        self._collector_lost = True

    def _take_news(self, left: float) -> None:
        self._renew()
        self._watch_new()
        deadlines = [run.awaited.deadline for run in self._by_object.values() if run.awaited and run.awaited.deadline]
        soonest = min((deadline - time.monotonic() for deadline in deadlines), default=left)
        longest = min(_LONGEST_WAIT_S, self._session.timeout_s / 2)
        timeouts = max(0, round(min(left, soonest, longest, PROGRESS_S) + 0.49))
        found = self._collector.WaitForUpdatesEx(self._version, _P.WaitOptions(maxWaitSeconds=timeouts))
        self._quiet_s = 0.0 if found is not None else self._quiet_s + timeouts
        if found is not None:
            self._version = found.version
            for each in found.filterSet or ():
                self._take(each)
        elif self._quiet_s >= longest:
            self._ask_again()
        else:
            self._ask_for_progress()
        self._pass_deadlines()

    def _ask_for_progress(self) -> None:
        tasks = [run.awaited.object for run in self._by_object.values() if run.awaited and run.awaited.kind is vim.Task]
        with suppress(VsmlError, vmodl.MethodFault):  # the wait for a task reports what is wrong with it
            for found, props in collect_objects(self._session, tasks, {vim.Task: ["info.progress"]}):
                if (run := self._by_object.get(reference(found))) is not None:
                    run.seen.update(props)
                    self._note_progress(run)

    def _ask_again(self) -> None:
        """Let vCenter report everything once more after a time without news: what got lost is not sent a second time.

        What it does not report even then, it does not know.
        """
        with suppress(vmodl.MethodFault, *BROKEN):
            self._collector.Destroy()
        self._collector = None
        for ref, run in list(self._by_object.items()):
            run.silences += not run.seen
            if run.silences > 1:
                self._lost(ref)

    def _renew(self) -> None:
        """Make a collector when there is none, or when a new session has left the old one behind."""
        if self._collector is not None and self._generation == self._session.generation:
            return
        self._generation, self._quiet_s = self._session.generation, 0.0
        self._collector = self._session.content.propertyCollector.CreatePropertyCollector()
        self._version = ""
        for run in self._by_object.values():
            run.filter = None
        self._unwatched = list(self._by_object.values())

    def _watch_new(self) -> None:
        """Watch everything that is not watched yet by one filter."""
        while self._unwatched:
            batch = list(self._unwatched)
            kinds = {run.awaited.kind: run.awaited.paths for run in batch if run.awaited}
            spec = _P.FilterSpec(
                propSet=[_P.PropertySpec(type=kind, pathSet=list(paths)) for kind, paths in kinds.items()],
                objectSet=[_P.ObjectSpec(obj=run.awaited.object) for run in batch if run.awaited],
            )
            try:
                made = _Filter(self._collector.CreateFilter(spec, True), len(batch), only_tasks=[*kinds] == [vim.Task])
            except vmodl.fault.ManagedObjectNotFound as fault:
                missing: Any = fault.obj
                ref = reference(missing if missing is not None else spec.objectSet[0].obj)
                if ref not in self._by_object:
                    raise
                self._lost(ref)
                continue
            for run in batch:
                run.filter = made
            self._unwatched = []

    def _lost(self, ref: str) -> None:
        """End the change whose task vCenter no longer knows: it was restarted meanwhile."""
        run = self._by_object[ref]
        error = VSphereError(
            "vCenter no longer knows the task; whether it ended well is not known",
            code="vsphere.task-lost",
            target=ref,
            hint=_RUN_AGAIN,
        )
        self._step(run, lambda: run.steps.throw(error))

    def _take(self, found: Any) -> None:
        for each in found.objectSet or ():
            run = self._by_object.get(reference(each.obj))
            if run is None or run.awaited is None:
                continue
            if str(each.kind) == "leave":
                self._lost(reference(each.obj))
                continue
            run.seen.update({change.name: change.val for change in each.changeSet or ()})
            self._judge(run, run.awaited)
        for each in found.missingSet or ():
            if reference(each.obj) in self._by_object:
                self._lost(reference(each.obj))

    def _judge(self, run: _Run, awaited: AwaitedState) -> None:
        if awaited.states:
            state = str(run.seen.get(*awaited.paths))
            if state in awaited.states:
                self._step(run, lambda: run.steps.send(state))
            return
        state = str(run.seen.get("info.state"))
        if state == "success":
            result = run.seen.get("info.result")
            self._step(run, lambda: run.steps.send(result))
        elif state == "error":
            fault = _fault(run.seen.get("info.error"))
            self._step(run, lambda: run.steps.throw(fault))
        else:
            self._note_progress(run)

    def _note_progress(self, run: _Run) -> None:
        self._note_percent(run, run.seen.get("info.progress"), queued=str(run.seen.get("info.state")) == "queued")

    def _note_percent(self, run: _Run, percent: int | None, *, queued: bool) -> None:
        if queued != run.queued or (percent is not None and percent != run.percent):
            run.percent, run.queued = percent, queued
            run.news.append(Update(task=run.task, done=False, queued=queued, percent=percent))

    def _pass_deadlines(self) -> None:
        now = time.monotonic()
        for run in list(self._by_object.values()):
            if run.awaited and run.awaited.deadline is not None and run.awaited.deadline <= now:
                self._step(run, lambda run=run: run.steps.send(False))  # type: ignore[misc]

    def close(self) -> None:
        """Forget everything; vCenter's tasks go on without us, and its collector ends with the session."""
        self._callers.shutdown(wait=False, cancel_futures=True)
        self._afterwards.shutdown(wait=False, cancel_futures=True)
        for run in self._working:
            with suppress(VsmlError, vmodl.MethodFault, *BROKEN):
                run.steps.close()  # what it has begun is given up
        self._working.clear()
        self._by_object.clear()
        self._runs.clear()
        self._later.clear()


def _take_last(steps: Generator[AwaitedState | StepProgress, Any, None]) -> None:
    # A failure is not reported: the next look finds that what was put off is missing.
    with suppress(StopIteration, VsmlError, vmodl.MethodFault):
        next(steps)


def _fault(error: Any) -> BaseException:
    if isinstance(error, BaseException):
        return error
    return vmodl.MethodFault(msg="the task failed and vCenter does not say why")
