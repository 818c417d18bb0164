"""What is said of hosts, once for all hosts of which the same is true."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from vsphere_ml.cli.views.cluster.changes import list_names
from vsphere_ml.cli.views.layout.folded import fold_hosts
from vsphere_ml.core.hosts.host_changes import (
    EnterMaintenance,
    NoteRunning,
    PowerOnAgain,
    ShutDown,
    WriteRecord,
    describe_host_change,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from vsphere_ml.core.diagnostics import Refusal
    from vsphere_ml.core.hosts.host_changes import HostChange
    from vsphere_ml.core.hosts.host_plan import HostPlan


def describe_steps(hosts: Iterable[HostPlan]) -> Iterator[tuple[str, str]]:
    """Yield what is done to hosts, in one line for those whose steps differ in the names of VMs alone.

    What is only noted on the way is left out.
    """
    described = {host.name: _by_text(host) for host in hosts if host.steps}
    for names, texts in fold_hosts((name, tuple(steps)) for name, steps in described.items()):
        alike = [steps for steps in described.values() if tuple(steps) == texts]
        yield names, "; ".join(_describe_merged([step for steps in alike for step in steps[text]]) for text in texts)


def merge_refusals(hosts: Iterable[HostPlan]) -> Iterator[tuple[str, str, str]]:
    """Yield the refusals of hosts, each with its hint: one for those that differ in their details alone."""
    of_hosts = [(host.name, each) for host in hosts for each in host.refusals]
    for names, (message, hint) in fold_hosts((host, (each.message, each.hint)) for host, each in of_hosts):
        alike = [each for _, each in of_hosts if (each.message, each.hint) == (message, hint)]
        yield names, _join_details(message, alike), hint


def _join_details(message: str, alike: Sequence[Refusal]) -> str:
    details = tuple(dict.fromkeys(detail for each in alike for detail in each.details))
    return f"{message}: {list_names(details)}" if details else message


def _by_text(host: HostPlan) -> dict[str, list[HostChange]]:
    """Return a host's steps by what they are without the names of VMs, in order."""
    found: dict[str, list[HostChange]] = {}
    for step in host.steps:
        if not isinstance(step, WriteRecord | NoteRunning):
            found.setdefault(describe_host_change(_with_vms(step, ())), []).append(step)
    return found


def _describe_merged(alike: Sequence[HostChange]) -> str:
    return describe_host_change(_with_vms(alike[0], [name for step in alike for name in _vms_of(step)]))


def _vms_of(step: HostChange) -> tuple[str, ...]:
    if isinstance(step, ShutDown | PowerOnAgain):
        return (step.vm_name,)
    return step.migrated if isinstance(step, EnterMaintenance) else ()


def _with_vms(step: HostChange, names: Sequence[str]) -> HostChange:
    """Return a step as if it were about these VMs."""
    if isinstance(step, ShutDown | PowerOnAgain):
        return replace(step, vm_name=list_names(names))
    return replace(step, migrated=tuple(names)) if isinstance(step, EnterMaintenance) else step
