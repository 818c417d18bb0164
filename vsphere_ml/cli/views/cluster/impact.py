"""What a yes leads to, in one line before the question: what stops, what reboots, what is deleted, how long at most."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from vsphere_ml.cli.views.cluster.changes import list_names
from vsphere_ml.core.order import count
from vsphere_ml.core.plan.deletions import deleted_vms, stopped_vms

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from vsphere_ml.core.hosts.host_plan import HostPlan
    from vsphere_ml.core.plan.plan import Plan

REBOOT_S = 1800.0  # the deadline of a reboot where no option sets one


def impact_of_plan(plan: Plan, rolling: int = 0) -> str:
    """Return what a plan for VMs and their hosts interrupts and deletes; nothing when it does neither.

    With `rolling`, so many VMs are down at a time.
    """
    going = deleted_vms(plan.changes)
    staying = sorted(stopped_vms(plan.changes) - going)
    return _sentence((*_stops(staying, plan.hosts, rolling), *_deletes(going), *_reboots(plan.hosts, 1, REBOOT_S)))


def impact_on_hosts(hosts: Sequence[HostPlan], parallel: int, reboot_s: float) -> str:
    """Return what changes to hosts interrupt, with so many hosts at once and so long for a reboot."""
    return _sentence((*_stops([], hosts), *_reboots(hosts, parallel, reboot_s)))


def _sentence(parts: Sequence[str]) -> str:
    return f"this {'; '.join(parts)}" if parts else ""


def _stops(vms: Sequence[str], hosts: Sequence[HostPlan], rolling: int = 0) -> Iterator[str]:
    own = dict.fromkeys((*vms, *(vm for host in hosts for vm in host.stopped)))
    if own:
        together = f", {rolling} at a time, each verified before the next" if rolling else ""
        them = "it" if len(own) == 1 else "them"
        yield f"stops {count(len(own), 'VM')} and powers {them} on again{together}: {list_names(tuple(own))}"
    if others := [vm for host in hosts for vm in host.foreign]:
        yield f"stops {count(len(others), 'VM')} of others too: {list_names(others)}"


def _deletes(vms: frozenset[str]) -> Iterator[str]:
    if vms:
        yield f"deletes {count(len(vms), 'VM')} with all disks: {list_names(sorted(vms))}"


def _reboots(hosts: Sequence[HostPlan], parallel: int, reboot_s: float) -> Iterator[str]:
    names = [host.name for host in hosts if host.reboots]
    if names:
        together = "one after another" if parallel == 1 else f"{parallel} at a time"
        minutes = math.ceil(math.ceil(len(names) / parallel) * reboot_s / 60)
        yield f"reboots {count(len(names), 'host')}, {together}, at most {minutes} min: {list_names(names)}"
