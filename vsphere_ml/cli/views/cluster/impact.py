"""What a yes leads to: what stops, what reboots, what is deleted, how long at most. In one line before the question.

All times are sums of the limits at which vsml gives a change up. How long a site takes is not known before, so each is
an upper bound, and none an estimate.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypedDict

from vsphere_ml.cli.views.cluster.changes import list_names
from vsphere_ml.core.order import count
from vsphere_ml.core.plan.deletions import deleted_vms, stopped_vms
from vsphere_ml.flows.cluster.executor import ApplyLimits
from vsphere_ml.flows.hosts.host_apply import StepTimeouts

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from vsphere_ml.core.hosts.host_plan import HostPlan
    from vsphere_ml.core.plan.plan import Plan

LIMITS, TIMEOUTS = ApplyLimits(), StepTimeouts()  # where no option sets others


class DowntimeData(TypedDict):
    """A VM that is stopped and started again, also one of others, and for how many seconds at most it is off."""

    vm: str
    off_seconds: float


def impact_of_plan(plan: Plan, rolling: int = 0, limits: ApplyLimits = LIMITS) -> str:
    """Return what a plan for VMs and their hosts interrupts and deletes; nothing when it does neither.

    With `rolling`, so many VMs are down at a time.
    """
    going = deleted_vms(plan.changes)
    staying = sorted(stopped_vms(plan.changes) - going)
    off = _seconds_off(plan, rolling, limits)
    return _sentence((*_stops(staying, plan.hosts, off, rolling), *_deletes(going), *_reboots(plan.hosts, 1, TIMEOUTS)))


def impact_on_hosts(hosts: Sequence[HostPlan], parallel: int, timeouts: StepTimeouts = TIMEOUTS) -> str:
    """Return what changes to hosts interrupt, with so many hosts at once."""
    return _sentence((*_stops([], hosts, _seconds_off_on(hosts, timeouts)), *_reboots(hosts, parallel, timeouts)))


def downtime(plan: Plan) -> list[DowntimeData]:
    """Return the VMs that a plan stops and starts again, those of its hosts first; by the default limits, in one go."""
    return [{"vm": vm, "off_seconds": seconds} for vm, seconds in _seconds_off(plan, 0, LIMITS).items()]


def _seconds_off(plan: Plan, rolling: int, limits: ApplyLimits) -> dict[str, float]:
    """Return for how many seconds at most VMs are off: while their host is made ready, and once more for the plan."""
    off = _seconds_off_on(plan.hosts, TIMEOUTS)
    for part in (part for part, _ in plan.batches(rolling)) if rolling else (plan,):
        for vm, seconds in limits.seconds_off(part.changes).items():
            off[vm] = off.get(vm, 0.0) + seconds
    return off


def _seconds_off_on(hosts: Sequence[HostPlan], timeouts: StepTimeouts) -> dict[str, float]:
    return {vm: timeouts.seconds_off(host) for host in hosts for vm in (*host.stopped, *host.foreign)}


def _sentence(parts: Sequence[str]) -> str:
    return f"this {'; '.join(parts)}" if parts else ""


def _stops(vms: Sequence[str], hosts: Sequence[HostPlan], off: Mapping[str, float], rolling: int = 0) -> Iterator[str]:
    own = dict.fromkeys((*vms, *(vm for host in hosts for vm in host.stopped)))
    if own:
        together = f", {rolling} at a time, each verified before the next" if rolling else ""
        them = "it" if len(own) == 1 else "them"
        again = f"powers {them} on again{together}{_describe_time_off(own, off)}"
        yield f"stops {count(len(own), 'VM')} and {again}: {list_names(tuple(own))}"
    if others := [vm for host in hosts for vm in host.foreign]:
        yield f"stops {count(len(others), 'VM')} of others too{_describe_time_off(others, off)}: {list_names(others)}"


def _describe_time_off(vms: Collection[str], off: Mapping[str, float]) -> str:
    """Return for how long the VMs are off at most: the longest time that one of them may be."""
    if not (longest := max((off.get(vm, 0.0) for vm in vms), default=0.0)):
        return ""
    return f", off for at most {math.ceil(longest / 60)} min{' each' if len(vms) > 1 else ''}"


def _deletes(vms: frozenset[str]) -> Iterator[str]:
    if vms:
        yield f"deletes {count(len(vms), 'VM')} with all disks: {list_names(sorted(vms))}"


def _reboots(hosts: Sequence[HostPlan], parallel: int, timeouts: StepTimeouts) -> Iterator[str]:
    names = [host.name for host in hosts if host.reboots]
    if names:
        together = "one after another" if parallel == 1 else f"{parallel} at a time"
        minutes = math.ceil(math.ceil(len(names) / parallel) * timeouts.reboot_s / 60)
        yield f"reboots {count(len(names), 'host')}, {together}, at most {minutes} min: {list_names(names)}"
