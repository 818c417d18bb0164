"""Makes ESXi hosts ready for nodes: the part of a plan that comes before its VMs. Placements say what is missing."""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING

from vsphere_ml.core.errors import VSphereError
from vsphere_ml.core.hosts import saved_state
from vsphere_ml.core.hosts.desired_settings import (
    DesiredSettings,
    ShellSeen,
    facts,
    missing_functions,
    placements_by_host,
    wants_mig,
)
from vsphere_ml.core.hosts.host_changes import SetMig
from vsphere_ml.core.hosts.host_plan import HostPlan, plan
from vsphere_ml.core.model.spec import HostConfigKind
from vsphere_ml.core.ports.esxi import see_one
from vsphere_ml.core.tools import nvidia_smi
from vsphere_ml.flows.hosts.host_apply import failure
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from vsphere_ml.core.hosts.host_changes import ByShell
    from vsphere_ml.core.hosts.saved_state import Record
    from vsphere_ml.core.model.esxi_state import EsxiHostState
    from vsphere_ml.core.model.host_settings import HostFacts
    from vsphere_ml.core.model.inventory import HostRef, Inventory
    from vsphere_ml.core.model.placement import NodePlacement, Placement
    from vsphere_ml.core.model.spec import ClusterSpec, HostConfigSpec
    from vsphere_ml.core.ports.vcenter import Clock
    from vsphere_ml.flows.hosts.host_apply import HostOutcome
    from vsphere_ml.flows.hosts.host_session import HostSession


@dataclass(slots=True)
class HostConfiguration:
    """The hosts of one cluster while they are read and configured."""

    spec: ClusterSpec
    session: HostSession
    clock: Clock
    _inventory: Inventory | None = None
    _placements: Mapping[str, tuple[NodePlacement, ...]] = field(default_factory=dict)
    _records: Mapping[HostRef, Record] = field(default_factory=dict)

    @property
    def supported_config(self) -> HostConfigSpec:
        """Return what the file asks for and can be done: MIG mode takes a shell."""
        asked = self.spec.host_config
        return asked if self.session.shells is not None else replace(asked, kinds=asked.kinds - {HostConfigKind.MIG})

    def in_service(self, inventory: Inventory) -> Inventory:
        """Return the site with the hosts in service that a run of ours has emptied: the plan brings them back."""
        away = [host.ref for host in inventory.hosts if host.maintenance or not host.connected]
        seen = self.session.hosts.see(away) if away else {}
        records = {ref: saved_state.parse(state.record) for ref, state in seen.items()}
        self._records = {
            ref: record
            for ref, record in records.items()
            if record is not None and record.ready and record.maintenance and record.cluster == self.spec.name
        }
        back = (
            replace(host, connected=True, maintenance=False) if host.ref in self._records else host
            for host in inventory.hosts
        )
        return replace(inventory, hosts=tuple(back))

    def plans(self, inventory: Inventory, placement: Placement) -> tuple[HostPlan, ...]:
        """Return what is to be done to each host before its nodes can be there; hosts that need nothing are left out.

        A host that must not be touched is among them, with the reasons.
        """
        self._inventory, self._placements = inventory, placements_by_host(placement)
        refs = [host.ref for host in inventory.hosts if host.ref in self._placements or host.ref in self._records]
        seen = self.session.hosts.see(refs)
        made = (self._plan(seen[ref]) for ref in refs if ref in seen)
        return tuple(each for each in made if each or (each.refusals and each.facts.unmet))

    def carry_out(self, hosts: Sequence[HostPlan]) -> tuple[HostOutcome, ...]:
        """Make hosts ready, one after another; the first that fails keeps the rest from being begun.

        Raises VSphereError `host.not-ready` then: VMs are begun only where every host is ready.
        """
        outcomes = self.session.executor(self._by_shell, self._again, self.clock).carry_out(hosts)
        if any(each.failed for each in outcomes):
            what = "could not be made ready; no VM was touched"
            raise failure(self.spec.name, outcomes, what, code="host.not-ready")
        return outcomes

    def _plan(self, state: EsxiHostState) -> HostPlan:
        asked = self._asked(state)
        case = self.session.plan_input(self.spec, state, facts(asked))
        return plan(replace(case, ready=True, warning=missing_functions(asked)))

    def _asked(self, state: EsxiHostState) -> DesiredSettings:
        if self._inventory is None:
            raise AssertionError("nobody has looked yet")
        return DesiredSettings(
            config=self.supported_config,
            host=self._inventory.host(state.ref),
            placements=self._placements.get(state.ref, ()),
            state=state,
            shell=self._shell(state),
            roce=self.spec.roce,
            switches={each.ref: each.switch_ref for each in self._inventory.networks if each.switch_ref is not None},
            record=saved_state.parse(state.record),
        )

    def _shell(self, state: EsxiHostState) -> ShellSeen:
        """Return what the host's shell answers; it is asked only when a GPU's MIG mode is at stake."""
        if self._inventory is None or HostConfigKind.MIG not in self.spec.host_config.kinds:
            return ShellSeen(mig={})
        if not wants_mig(self._placements.get(state.ref, ()), self._inventory.host(state.ref)):
            return ShellSeen(mig={})
        answer = self.session.ask_shell(state, lambda run: run(nvidia_smi.QUERY))
        if isinstance(answer, str):
            return ShellSeen(mig={}, why=answer)
        why = "" if answer.ok else f"nvidia-smi: {nvidia_smi.words(answer)}"
        return ShellSeen(mig=nvidia_smi.modes(answer.out), why=why)

    def _again(self, host: HostPlan) -> HostFacts:
        return facts(self._asked(see_one(self.session.hosts, host.facts.host, host.name)))

    def _by_shell(self, change: ByShell) -> None:
        """Switch MIG mode; nvidia-smi may take it for the next boot only, which the look afterwards shows."""
        if not isinstance(change, SetMig):
            raise TypeError(f"{type(change).__name__} is nothing of [host_config]")
        state = see_one(self.session.hosts, change.host, change.host_name)
        with self.session.open_shell(state) as run:
            answer = run(nvidia_smi.setting(change.gpu, change.value))
        if not answer.ok:
            raise VSphereError(
                f"{change.host_name}: nvidia-smi refuses MIG mode of GPU {change.gpu}: {nvidia_smi.words(answer)}",
                code="host.refused",
                target=change.host_name,
                hint=f"on the host: {nvidia_smi.setting(change.gpu, change.value)}",
            )
