"""Looks at the hosts and compares what is seen with what is wanted: the first half of `enable-ats`. Writes nothing."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import field, replace
from typing import TYPE_CHECKING

from vsphere_ml.core.catalog import ats_versions
from vsphere_ml.core.errors import NotPossible
from vsphere_ml.core.hosts import saved_state
from vsphere_ml.core.hosts.ats_facts import facts
from vsphere_ml.core.hosts.ats_settings import connectx, list_settings
from vsphere_ml.core.hosts.host_plan import HostPlan, plan
from vsphere_ml.core.ports.esxi import see_one
from vsphere_ml.core.ports.host_events import Asking
from vsphere_ml.flows.cluster.plan import compare
from vsphere_ml.flows.guests import boot
from vsphere_ml.flows.hosts.host_firmware import FirmwareAccess
from vsphere_ml.flows.site.read_site import read_site
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vsphere_ml.core.errors import VsmlError
    from vsphere_ml.core.hosts.ats_settings import HostSettings
    from vsphere_ml.core.hosts.saved_state import Record
    from vsphere_ml.core.model.esxi_state import EsxiHostState
    from vsphere_ml.core.model.host_settings import HostFacts
    from vsphere_ml.core.model.inventory import HostRef, Inventory
    from vsphere_ml.core.ports.vcenter import GuestPlace
    from vsphere_ml.flows.hosts.host_session import HostSession
    from vsphere_ml.flows.run_context import RunContext

ASKED_AT_ONCE = 8  # hosts


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What a run was asked for."""

    named: tuple[str, ...] = ()  # hosts by name; none: those of the cluster
    revert: bool = False
    dry_run: bool = False
    confirmed: bool = True  # as of a Consent


@dataclass(slots=True)
class HostsReading:
    """Looks at hosts, as often as needed, for one task."""

    run: RunContext
    session: HostSession
    task: Task
    settings_by_host: dict[str, HostSettings] = field(default_factory=dict)  # by host
    inventory: Inventory | None = None
    firmware_access: FirmwareAccess | None = None

    def plans(self, why: str, wait_s: float = 0.0) -> tuple[HostPlan, ...]:
        """Return what is to be done to each host, by name, after a look at all of them.

        Guests that have a whole function may take `wait_s` seconds to answer: their VMs were just powered on.
        """
        self.inventory = read_site(self.run, why=why)
        compared = compare(self.run.spec, _in_service(self.inventory))
        records = self._records(self.inventory) if self.task.revert else {}
        wanted = list_settings(self.run.spec, self.inventory, compared.plan.placements, self.task.named, records)
        if not wanted:
            raise self._no_hosts(compared.placement_error)
        self.settings_by_host = {settings.ref: settings for settings in wanted}
        places = self._places(wanted, wait_s)
        self.firmware_access = FirmwareAccess(session=self.session, places=places, wait_s=wait_s)
        seen = self.session.hosts.see([settings.ref for settings in wanted])
        there = [seen[settings.ref] for settings in wanted if settings.ref in seen]
        with ThreadPoolExecutor(max_workers=ASKED_AT_ONCE) as pool:
            return tuple(pool.map(self._plan, there))

    def _records(self, inventory: Inventory) -> dict[HostRef, Record]:
        """Return what is written down on hosts: also where no node is now, values wait to come back."""
        seen = self.session.hosts.see([host.ref for host in inventory.hosts if connectx(host)])
        found = {ref: saved_state.parse(state.record) for ref, state in seen.items()}
        return {ref: record for ref, record in found.items() if record is not None}

    def again(self, host: HostPlan) -> HostFacts:
        """Return one host's facts as they are now, compared with what is wanted."""
        return self._plan(see_one(self.session.hosts, host.facts.host, host.name)).facts

    def _plan(self, state: EsxiHostState) -> HostPlan:
        if self.inventory is None or self.firmware_access is None:
            raise AssertionError("nobody has looked yet")
        settings = self.settings_by_host[state.ref]
        self.session.notify(Asking(host=state.name))
        firmware = self.firmware_access.read(settings, state)
        found = facts(settings, state, firmware, self.inventory, saved_state.parse(state.record))
        return plan(
            replace(
                self.session.plan_input(self.run.spec, state, found),
                revert=self.task.revert,
                unsupported=ats_versions.refusal(state.version, state.build, state.cpu_vendor) or "",
                warning=ats_versions.version_warning(state.version, state.cpu_vendor) or "",
            )
        )

    def _places(self, wanted: Sequence[HostSettings], wait_s: float) -> dict[str, GuestPlace | VsmlError]:
        """Return where the guests are that have a port's whole function."""
        names = {port.guest for settings in wanted for port in settings.ports if port.guest}
        if not names:
            return {}
        deadline = boot.start_deadline(wait_s, self.run.clock)
        quiet = replace(self.run, notify=_nobody)
        found = boot.wait_address(quiet, boot.read_running_site(quiet), deadline, only=names)
        return {**found.errors, **{place.name: place for place in found.places}}

    def _no_hosts(self, unplaced: NotPossible | None) -> NotPossible:
        return NotPossible(
            f"no host is {self.run.spec.name}'s: none of its VMs exists, and no node can be placed",
            code="ats.no-hosts",
            target=self.run.spec.name,
            hint="`vsml provision` first, or name hosts with --host",
            details=unplaced.details if unplaced is not None else (),
        )


def _in_service(inventory: Inventory) -> Inventory:
    """Return the site as if every host were in service: which ports are used does not change while one is not."""
    return replace(inventory, hosts=tuple(replace(host, connected=True, maintenance=False) for host in inventory.hosts))


def _nobody(_event: object) -> None:
    """Say nothing of the look that only finds the guests' addresses."""
