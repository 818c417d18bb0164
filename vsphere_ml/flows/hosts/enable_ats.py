"""`vsml enable-ats`: PCIe Address Translation Services on the hosts, from ESXi's kernel to the NICs' firmware."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from vsphere_ml.core.errors import NotPossible, VsmlError
from vsphere_ml.core.hosts.host_changes import SetFirmware, WriteRecord
from vsphere_ml.flows.cluster.confirm import agree
from vsphere_ml.flows.consent import refusals, refuse
from vsphere_ml.flows.hosts.host_apply import HostOutcome, failure
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from vsphere_ml.core.hosts.host_changes import ByShell
    from vsphere_ml.core.hosts.host_plan import HostPlan
    from vsphere_ml.core.model.host_settings import HostFacts
    from vsphere_ml.flows.hosts.ats_hosts import HostsReading

Approve: TypeAlias = "Callable[[AtsPlan], bool]"
GUESTS_S = 300.0  # until guests answer that were powered on again


@dataclass(frozen=True, slots=True, kw_only=True)
class AtsPlan:
    """What is to be done to each host, in the order of their names."""

    cluster: str
    hosts: tuple[HostPlan, ...]
    revert: bool = False

    def __bool__(self) -> bool:
        return any(self.hosts)

    @property
    def work(self) -> tuple[HostPlan, ...]:
        return self.hosts

    @property
    def enabled(self) -> bool:
        return all(each.facts.enabled for each in self.hosts)


@dataclass(frozen=True, slots=True, kw_only=True)
class AtsReport:
    """The end of a run. `plan` is what was shown last, `after` what a look at the end found."""

    plan: AtsPlan
    applied: bool
    outcomes: tuple[HostOutcome, ...] = ()
    after: tuple[HostPlan, ...] = ()

    @property
    def hosts(self) -> tuple[HostPlan, ...]:
        """The hosts as they were seen last."""
        return self.after or self.plan.hosts

    @property
    def facts(self) -> tuple[HostFacts, ...]:
        return tuple(each.facts for each in self.hosts)

    @property
    def error(self) -> VsmlError | None:
        """Return what makes this run a failure: a host that failed, or one that is not enabled at the end."""
        if any(each.failed for each in self.outcomes):
            return failure(self.plan.cluster, self.outcomes, "failed", code="ats.host-failed")
        if self.plan.revert:
            waiting = [each for each in self.facts if each.unmet]
            return _not_reverted(self.plan.cluster, waiting) if waiting else None
        missing = [each for each in self.facts if not each.enabled]
        if missing:
            return NotPossible(
                f"{self.plan.cluster}: ATS is not enabled on {len(missing)} of {len(self.facts)} hosts",
                code="ats.not-enabled",
                target=self.plan.cluster,
                hint="the report says for each host what to type; then run the same command again",
                details=tuple(line for each in missing for line in _unmet_lines(each)),
            )
        return None


def enable_ats(seen: HostsReading, *, approve: Approve, show: Callable[[AtsPlan], None] | None = None) -> AtsReport:
    """Look, plan, ask, and configure one host after another; each is believed only when seen after its reboot.

    Raises NotPossible, before anything is touched, when one of the hosts must not be; the plan is given to `show` then.
    """
    task = seen.task
    todo = _make_ats_plan(seen, "first")
    if task.dry_run:
        return AtsReport(plan=todo, applied=False)
    if show is not None and any(host.refusals for host in todo.hosts):
        show(todo)
    refuse(refusals(todo.hosts), confirmed=task.confirmed)
    made = _HostsRun(seen)
    plan, applied = agree(todo, made.replan, approve, made.act, seen.run.vcenter, seen.run.spec.name)
    return AtsReport(plan=plan, applied=applied, outcomes=made.outcomes, after=made.after)


@dataclass(slots=True)
class _HostsRun:
    """The hosts while they are worked on, and what became of them."""

    seen: HostsReading
    outcomes: tuple[HostOutcome, ...] = ()
    after: tuple[HostPlan, ...] = ()

    def replan(self, _before: AtsPlan) -> AtsPlan:
        fresh = _make_ats_plan(self.seen, "before acting")
        refuse(refusals(fresh.hosts))
        return fresh

    def act(self, plan: AtsPlan) -> None:
        self.outcomes = _act(self.seen, plan.hosts)
        self.after = self.seen.plans("again", GUESTS_S)
        self.outcomes += _forget(self.seen, self.after)


def _make_ats_plan(seen: HostsReading, why: str) -> AtsPlan:
    hosts = seen.plans(why)
    if seen.task.revert:  # a host without a record was never changed
        hosts = tuple(each for each in hosts if each.record is not None)
    return AtsPlan(cluster=seen.run.spec.name, hosts=hosts, revert=seen.task.revert)


def _act(seen: HostsReading, todo: tuple[HostPlan, ...]) -> tuple[HostOutcome, ...]:
    executor = seen.session.executor(_by_shell(seen), seen.again, seen.run.clock)
    return executor.carry_out([host for host in todo if host])


def _forget(seen: HostsReading, after: tuple[HostPlan, ...]) -> tuple[HostOutcome, ...]:
    """Take records away of hosts that were down when their plan was made, now that all is seen to be back.

    Returns what went wrong with it.
    """
    if not seen.task.revert:
        return ()
    back = tuple(each for each in after if all(isinstance(step, WriteRecord) and not step.text for step in each.steps))
    return tuple(each for each in _act(seen, back) if each.errors)


def _by_shell(seen: HostsReading) -> Callable[[ByShell], None]:
    def make(change: ByShell) -> None:
        if seen.firmware_access is None or not isinstance(change, SetFirmware):
            raise AssertionError("nobody has looked yet, or it is nothing of ATS")
        seen.firmware_access.set(change)

    return make


def _not_reverted(cluster: str, waiting: list[HostFacts]) -> NotPossible:
    return NotPossible(
        f"{cluster}: former values are not back on {', '.join(each.name for each in waiting)}; they stay written down",
        code="ats.not-reverted",
        target=waiting[0].name,
        hint="give access as the report says, or type its commands by hand; then run the same command again",
        details=tuple(line for each in waiting for line in _unmet_lines(each)),
    )


def _unmet_lines(host: HostFacts) -> Iterator[str]:
    """Yield what is missing on a host; the report says what a person can type."""
    for fact in host.unmet:
        place = f" of {fact.on}" if fact.on else ""
        why = f" ({fact.why})" if fact.why else ""
        yield f"{host.name}: {fact.name}{place}: {fact.state}{why}"
    for vm in host.vms:
        if not vm.ok:
            yield f"{host.name}: {vm.vm}: {vm.words}"
