"""The plan: what turns a site into what was asked for. A value; nothing has happened while one exists."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from vsphere_ml.core.diagnostics import Diagnostic, Severity
from vsphere_ml.core.plan.changes import DeleteVm, PowerOff, interrupts, subject
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from vsphere_ml.core.hosts.host_changes import HostChange
    from vsphere_ml.core.hosts.host_plan import HostPlan
    from vsphere_ml.core.model.placement import NodePlacement
    from vsphere_ml.core.plan.changes import Change


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Changes that may be made side by side, but that those about one VM keep the order of the stages."""

    title: str
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Stages in the order they are carried out; truthy while something is to be done."""

    stages: tuple[Stage, ...]
    hosts: tuple[HostPlan, ...] = ()  # made ready before the first stage, in the order of their names
    placements: tuple[NodePlacement, ...] = ()
    notes: tuple[str, ...] = ()
    diagnostics: tuple[
        Diagnostic, ...
    ] = ()  # ERROR: a node is not what it was set up for; WARNING: the site differs; INFO

    def __bool__(self) -> bool:
        return any(self.hosts) or any(stage.changes for stage in self.stages)

    @property
    def drift(self) -> tuple[Diagnostic, ...]:
        """In what the site differs from the file and stays so when the plan is carried out."""
        return tuple(each for each in self.diagnostics if each.severity is not Severity.INFO)

    @property
    def degraded(self) -> tuple[Diagnostic, ...]:
        """The nodes that run on other devices than they were set up for."""
        return tuple(each for each in self.diagnostics if each.severity is Severity.ERROR)

    @property
    def changes(self) -> Iterator[Change]:
        return (change for stage in self.stages for change in stage.changes)

    @property
    def host_changes(self) -> tuple[HostChange, ...]:
        return tuple(step for host in self.hosts for step in host.steps)

    @property
    def interrupting(self) -> tuple[Change, ...]:
        return tuple(change for change in self.changes if interrupts(change))

    def batches(self, size: int) -> Iterator[tuple[Plan, tuple[str, ...]]]:
        """Yield parts in their order, each with the VMs that it stops and starts again, at most `size`.

        The first stops none of these: it has all changes to the site, to new VMs, and to those that are deleted.
        """
        deleted = {each.vm for each in self.changes if isinstance(each, DeleteVm)}
        stopped = [each.vm for each in self.changes if isinstance(each, PowerOff) and each.vm not in deleted]
        yield self._of_vms({vm for each in self.changes if (vm := subject(each)) not in stopped}), ()
        names = iter(stopped)
        while batch := tuple(islice(names, size)):
            yield self._of_vms(batch), batch

    def _of_vms(self, vms: Collection[str | None]) -> Plan:
        """Return the changes to these VMs; None stands for the site."""
        stages = (
            replace(stage, changes=tuple(each for each in stage.changes if subject(each) in vms))
            for stage in self.stages
        )
        return replace(self, stages=tuple(stage for stage in stages if stage.changes))
