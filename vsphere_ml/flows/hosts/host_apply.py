"""Carries out hosts' plans, one host after another: forward as planned, and back to service whatever happened."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field
from typing import TYPE_CHECKING, TypeAlias

from vsphere_ml.core.errors import VsmlError, VSphereError
from vsphere_ml.core.hosts.host_changes import (
    AwaitHost,
    EnterMaintenance,
    ExitMaintenance,
    PowerOnAgain,
    Reboot,
    SetFirmware,
    SetMig,
    Setting,
    ShutDown,
    WriteRecord,
    describe_host_change,
)
from vsphere_ml.core.model.host_settings import SettingState
from vsphere_ml.core.plan.outcome import HostsInterrupted
from vsphere_ml.core.ports.host_events import (
    HostBegun,
    HostChecked,
    HostEnded,
    StepBegun,
    StepDone,
    StepFailed,
    StepInEffect,
)
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from vsphere_ml.core.hosts.host_changes import ByShell, HostChange
    from vsphere_ml.core.hosts.host_plan import HostPlan
    from vsphere_ml.core.model.host_settings import HostFacts
    from vsphere_ml.core.ports.esxi import Hosts
    from vsphere_ml.core.ports.host_events import HostListener
    from vsphere_ml.core.ports.vcenter import Clock

NOT_BY_REBOOT = "compare on the host: `mlxconfig -e query`, `esxcli system settings kernel list`, `nvidia-smi -q`"
WANTS_REBOOT = "run the same command again: what waits for a reboot gets one"
NOT_TAKEN = (SettingState.NOT_CONFIGURED, SettingState.PENDING)
Shell: TypeAlias = "Callable[[ByShell], None]"
Check: TypeAlias = "Callable[[HostPlan], HostFacts]"  # looks again at a host that has rebooted


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTimeouts:
    """How long each kind of step may take."""

    shutdown_s: float = 300.0
    maintenance_s: float = 600.0
    reboot_s: float = 1800.0
    change_s: float = 120.0

    def limit(self, change: HostChange) -> float:
        match change:
            case ShutDown():
                return self.shutdown_s
            case EnterMaintenance() | ExitMaintenance():
                return self.maintenance_s
            case Reboot() | AwaitHost():
                return self.reboot_s
            case _:
                return self.change_s

    def seconds_off(self, plan: HostPlan) -> float:
        """Return for how many seconds at most the VMs are off that are stopped for a host; 0 where none is.

        That is the sum of the limits of all steps from the first shutdown to the last start, one after another. The
        boot of the guests comes on top.
        """
        if not (plan.stopped or plan.foreign):
            return 0.0
        power = [at for at, step in enumerate(plan.steps) if isinstance(step, ShutDown | PowerOnAgain)]
        return sum(map(self.limit, plan.steps[power[0] : power[-1] + 1])) if power else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HostOutcome:
    """What became of one host. `left` says in words what is not as it was found."""

    plan: HostPlan
    done: tuple[StepDone, ...] = ()
    errors: tuple[VsmlError, ...] = ()
    left: tuple[str, ...] = ()
    begun: bool = True  # false: an earlier host had failed

    @property
    def failed(self) -> bool:
        return bool(self.errors or self.left)

    @property
    def rebooted_s(self) -> float | None:
        """How long the reboot took, until the host answered again."""
        return next((step.seconds for step in self.done if isinstance(step.change, Reboot)), None)


@dataclass(slots=True)
class HostExecutor:
    """Carries out plans, so many hosts at once as asked; the first that fails keeps the rest from being begun."""

    hosts: Hosts
    by_shell: Shell
    check: Check
    notify: HostListener
    clock: Clock
    timeouts: StepTimeouts
    parallel: int = 1
    _stop: threading.Event = field(default_factory=threading.Event)
    _interrupted: threading.Event = field(default_factory=threading.Event)
    _running: dict[str, _OneHost] = field(default_factory=dict)

    def carry_out(self, plans: Sequence[HostPlan]) -> tuple[HostOutcome, ...]:
        """Return what became of each host. Raises HostsInterrupted on Ctrl-C."""
        ended: list[HostOutcome] = []
        try:
            if self.parallel == 1:
                ended.extend(self._one(plan) for plan in plans)
                return tuple(ended)
            return tuple(self._side_by_side(plans))
        except KeyboardInterrupt as interrupt:
            left = [line for walk in self._running.values() for line in walk.outcome().left]
            raise HostsInterrupted(tuple(left)) from interrupt

    def _side_by_side(self, plans: Sequence[HostPlan]) -> Iterator[HostOutcome]:
        with ThreadPoolExecutor(max_workers=self.parallel) as pool:
            futures = [pool.submit(self._one, plan) for plan in plans]
            try:
                yield from [future.result() for future in futures]
            except KeyboardInterrupt:
                self._stop.set()
                self._interrupted.set()  # workers see it when they next report progress
                raise

    def _one(self, plan: HostPlan) -> HostOutcome:
        if self._stop.is_set():
            return HostOutcome(plan=plan, begun=False)
        walk = self._running[plan.name] = _OneHost(self, plan)
        outcome = walk.carry_out()
        if outcome.errors:
            self._stop.set()
        return outcome

    def interrupted(self) -> bool:
        return self._interrupted.is_set()


@dataclass(slots=True)
class _OneHost:
    """One host's walk."""

    walk: HostExecutor
    plan: HostPlan
    done: list[StepDone] = field(default_factory=list)
    errors: list[VsmlError] = field(default_factory=list)
    gone: bool = False  # it went down and did not come back
    may_have_entered: bool = False  # the answer to entering maintenance mode was lost
    now: HostChange | None = None  # the step under way

    def carry_out(self) -> HostOutcome:
        walk = self.walk
        begun = walk.clock.now()
        walk.notify(HostBegun(host=self.plan.name, steps=len(self.plan.steps)))
        for number, change in enumerate(self.plan.steps, 1):
            if self._still_wanted(change):
                self._take(change, number)
        walk.notify(HostEnded(host=self.plan.name, failed=bool(self.errors), seconds=walk.clock.now() - begun))
        return self.outcome()

    def _still_wanted(self, change: HostChange) -> bool:
        """Return whether a step is to be taken: after a failure only those that bring host and VMs back to service."""
        if not self.errors:
            return True
        if self.gone:
            return False
        if isinstance(change, ExitMaintenance):
            return self._in_maintenance
        if isinstance(change, PowerOnAgain):
            return not self._in_maintenance
        if isinstance(change, WriteRecord):  # that the host is out of maintenance mode; never the end of the record
            return bool(change.text and self.done) and not self._in_maintenance
        return False

    def _take(self, change: HostChange, number: int) -> None:
        walk, limit = self.walk, self.walk.timeouts.limit(change)
        walk.notify(StepBegun(change=change, number=number, deadline_s=limit))
        begun, self.now = walk.clock.now(), change
        try:
            if isinstance(change, SetFirmware | SetMig):
                walk.by_shell(change)
            else:
                walk.hosts.perform(change, limit, lambda words: self._report_progress(change, words))
        except VsmlError as error:
            self.now = None
            self._failed(change, error)
            return
        self.now = None
        self.done.append(StepDone(change=change, seconds=walk.clock.now() - begun))
        walk.notify(self.done[-1])
        if isinstance(change, Reboot | AwaitHost) or self._is_last(change):
            self._check()

    def _report_progress(self, change: HostChange, words: str) -> None:
        if self.walk.interrupted():
            raise KeyboardInterrupt
        self.walk.notify(StepInEffect(change=change, words=words))

    def _failed(self, change: HostChange, error: VsmlError) -> None:
        self.errors.append(error)
        self.may_have_entered |= isinstance(change, EnterMaintenance) and error.code == "vcenter.interrupted"
        self.gone = self.gone or (isinstance(change, Reboot | AwaitHost) and error.code == "host.reboot-timeout")
        self.walk.notify(StepFailed(change=change, error=error))

    def _check(self) -> None:
        """Look again, after the reboot where there is one. What did not take effect fails the host.

        It goes back to service even so.
        """
        try:
            facts = self.walk.check(self.plan)
        except VsmlError as error:
            self.errors.append(error)
            return
        self.walk.notify(HostChecked(facts=facts))
        # A guest that has the whole function is asked at the end, when it runs again.
        waiting = [fact for fact in facts.facts if fact.state in NOT_TAKEN and fact.can_be_set and not fact.guest]
        if waiting:
            self.errors.append(
                VSphereError(
                    f"{self.plan.name} {'has rebooted' if self._reboots else 'accepted every setting'}, "
                    "but not everything is in effect",
                    code="ats.not-effective",
                    target=self.plan.name,
                    hint=NOT_BY_REBOOT if self._reboots else WANTS_REBOOT,
                    details=tuple(
                        f"{fact.name} {fact.on}".strip() + f": configured {fact.configured}, in effect {fact.effective}"
                        for fact in waiting
                    ),
                )
            )

    def _is_last(self, change: HostChange) -> bool:
        """Return whether a setting ends a plan without a reboot."""
        return isinstance(change, Setting) and change is self.plan.steps[-1]

    @property
    def _reboots(self) -> bool:
        return any(isinstance(each, Reboot | AwaitHost) for each in self.plan.steps)

    @property
    def _in_maintenance(self) -> bool:
        """Whether the host is, or may be, in maintenance mode that we began."""
        begun = any(isinstance(each, ExitMaintenance) for each in self.plan.steps) and (
            self._did(EnterMaintenance)
            or self.may_have_entered
            or not any(isinstance(each, EnterMaintenance) for each in self.plan.steps)
        )
        return begun and not self._did(ExitMaintenance)

    def _did(self, kind: type[object]) -> bool:
        return any(isinstance(step.change, kind) for step in self.done)

    def outcome(self) -> HostOutcome:
        return HostOutcome(
            plan=self.plan, done=tuple(self.done), errors=tuple(self.errors), left=tuple(self._left_behind())
        )

    def _left_behind(self) -> Iterator[str]:
        name = self.plan.name
        if self.now is not None:
            yield f"{name} was at this step: {describe_host_change(self.now)}"
        if self.gone:
            yield f"{name} has not come back from its reboot"
        if self._in_maintenance:
            yield f"{name} is in maintenance mode"
        started = {step.change.vm for step in self.done if isinstance(step.change, PowerOnAgain)}
        down = {step.change.vm for step in self.done if isinstance(step.change, ShutDown)}
        for step in self.plan.steps:
            if isinstance(step, PowerOnAgain) and step.vm not in started:
                stopped_now = step.vm in down or not any(
                    isinstance(each, ShutDown) and each.vm == step.vm for each in self.plan.steps
                )
                if stopped_now:
                    yield f"{step.vm_name} is powered off"


def failure(cluster: str, outcomes: Sequence[HostOutcome], what: str, *, code: str) -> VSphereError:
    """Return the error of a walk in which some hosts failed; `what` says in words what became of these."""
    failed = [each for each in outcomes if each.failed]
    waiting = [each.plan.name for each in outcomes if not each.begun]
    rest = f"; not begun: {', '.join(waiting)}" if waiting else ""
    return VSphereError(
        f"{cluster}: {', '.join(each.plan.name for each in failed)} {what}{rest}",
        code=code,
        target=failed[0].plan.name,
        hint=failed[0].errors[0].hint if failed[0].errors else "run the same command again",
        details=tuple(line for each in failed for line in _words(each)),
    )


def _words(outcome: HostOutcome) -> tuple[str, ...]:
    """Return an outcome's errors and what was left, each in a line."""
    errors = (line for error in outcome.errors for line in (error.message, *error.details))
    return (*errors, *outcome.left)
