"""What a writing command leaves behind: what was planned, what became of it, what is still missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.core.diagnostics import Diagnostic, Severity
from vsphere_ml.core.errors import VSphereError
from vsphere_ml.core.plan.changes import DeleteVm, PowerOn, subject
from vsphere_ml.core.plan.describe import describe, drift_in, is_off, object_name
from vsphere_ml.core.plan.outcome import Done, Failed, Skipped, left_off
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from vsphere_ml.core.errors import VsmlError
    from vsphere_ml.core.model.placement import NodePlacement
    from vsphere_ml.core.plan.outcome import Outcome
    from vsphere_ml.core.plan.plan import Plan
    from vsphere_ml.flows.guests.configure import ConfigureResult
    from vsphere_ml.flows.hosts.host_apply import HostOutcome

_INCOMPLETE = {"provision": "provision.incomplete", "destroy": "destroy.incomplete"}


@dataclass(frozen=True, slots=True, kw_only=True)
class NotApplied:
    """A VM that was not powered on, because vCenter accepted a setting and did not keep it."""

    vm: str
    drift: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The end of a run. `done` means that a plan made from a fresh look is empty, and no guest failed."""

    command: str  # provision, destroy
    cluster: str
    file: str  # its name
    plan: Plan  # as it was shown last
    applied: bool  # false: nothing to do, only asked for a plan, or declined
    pending: Plan  # what is still missing in a fresh look
    outcomes: tuple[Outcome, ...] = ()
    not_applied: tuple[NotApplied, ...] = ()
    placement_error: VsmlError | None = None  # why, after acting, nodes have no placement any more
    seconds: float = 0.0  # from the first change to the last
    guests: ConfigureResult | None = None  # None: left alone
    skipped_guests: str = ""  # why
    hosts: tuple[HostOutcome, ...] = ()  # that were made ready before
    only: tuple[str, ...] = ()  # nodes, or VMs to destroy, that alone were asked for; none: the whole cluster
    remaining: tuple[str, ...] = ()  # VMs that the cluster still has when only some were destroyed

    @property
    def done(self) -> bool:
        return self.site_done and self._guests_error is None

    @property
    def failed(self) -> tuple[Failed, ...]:
        return tuple(each for each in self.outcomes if isinstance(each, Failed))

    @property
    def left_out(self) -> tuple[Skipped, ...]:
        return tuple(each for each in self.outcomes if isinstance(each, Skipped))

    @property
    def placements(self) -> tuple[NodePlacement, ...]:
        return self.pending.placements or self.plan.placements

    @property
    def notes(self) -> tuple[str, ...]:
        return self.pending.notes or self.plan.notes

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        return self.pending.diagnostics if self.applied else self.plan.diagnostics

    @property
    def drift(self) -> tuple[Diagnostic, ...]:
        """In what the site still differs from the file, without a change of vsml that would correct it."""
        return tuple(each for each in self.diagnostics if each.severity is not Severity.INFO)

    @property
    def off(self) -> tuple[str, ...]:
        """The VMs that a provision stopped and could not start again."""
        return left_off(self.outcomes) if self.command == "provision" else ()

    @property
    def error(self) -> VsmlError | None:
        """Return what makes this run a partial failure, or None when it did all it set out to do."""
        return next(iter(self.errors), None)

    @property
    def errors(self) -> tuple[VsmlError, ...]:
        """Return what makes this run a partial failure: the site's error before the guests'."""
        if not self.applied and (self.plan or not self.degraded):
            return ()
        return tuple(each for each in (self._site_error, self._guests_error) if each is not None)

    @property
    def site_done(self) -> bool:
        """Return whether nothing is missing on the site."""
        return not self._incomplete and not self.degraded

    @property
    def _incomplete(self) -> bool:
        return bool(self.pending or self.placement_error is not None or self.failed)

    @property
    def degraded(self) -> tuple[Diagnostic, ...]:
        """The nodes that run on other devices than they were set up for."""
        return self.pending.degraded

    @property
    def _guests_error(self) -> VsmlError | None:
        return self.guests.error if self.guests else None

    @property
    def _site_error(self) -> VSphereError | None:
        if self.site_done:
            return None
        if not self._incomplete:
            return self._degraded_error
        reasons = self._reasons()
        count = len(reasons)
        return VSphereError(
            f"{self.cluster} is not finished: {count} of its parts {'is' if count == 1 else 'are'} not as planned",
            code=_INCOMPLETE[self.command],
            target=self.cluster,
            hint=f"`vsml {self.command}` again goes on from here",
            details=(
                *(f"{thing}: {reason}" for thing, each in reasons.items() for reason in each),
                *map(is_off, self.off),
            ),
        )

    @property
    def _degraded_error(self) -> VSphereError:
        names = ", ".join(each.target for each in self.degraded)
        return VSphereError(
            f"{self.cluster} runs, but not on the GPUs it was set up for: {names}",
            code="provision.degraded",
            target=self.degraded[0].target,
            hint=self.degraded[0].hint,
            details=tuple(map(str, self.degraded)),
        )

    def _reasons(self) -> dict[str, list[str]]:
        """Return each thing that is not as planned, with the reasons nearest to the cause."""
        answers: dict[str, list[str]] = {}
        for failure in self.failed:
            answers.setdefault(object_name(failure.change), []).append(_failure_reason(failure) + self._after(failure))
        pending = tuple(drift_in(self.pending.changes))
        missing_of = {thing for thing, _ in pending}
        for left in self.left_out:
            vm = subject(left.change)
            if isinstance(left.change, DeleteVm):
                answers.setdefault(left.change.vm, []).append(left.because)
            elif vm in missing_of:
                answers.setdefault(vm, [f"left out: {left.because}"])
        for drop in self.not_applied:
            answers[drop.vm] = [f"not powered on; vCenter did not apply: {'; '.join(drop.drift)}"]
        explained = frozenset(answers)
        for thing, missing in pending:
            if thing not in explained:
                answers.setdefault(thing, []).append(missing)
        for each in self.degraded:
            answers.setdefault(each.target, []).append(f"degraded: {each.message}")
        if self.placement_error is not None:
            thing = self.placement_error.target or self.cluster
            why = (self.placement_error.reason, *self.placement_error.details)
            answers.setdefault(thing, []).extend(why)
        return answers

    def _after(self, failure: Failed) -> str:
        """Return what was done for a VM after a change of it failed, in words."""
        later = self.outcomes[self.outcomes.index(failure) + 1 :]
        vm = subject(failure.change)
        again = vm and any(isinstance(each, Done) and each.change == PowerOn(vm=vm) for each in later)
        return "; it was not changed, and runs again" if again else ""


def _failure_reason(failure: Failed) -> str:
    """Return why a change failed; what vCenter refused says already what it was."""
    error = failure.error
    says = isinstance(error, VSphereError) and error.action
    return error.message if says else f"{describe(failure.change)} failed: {error.message}"
