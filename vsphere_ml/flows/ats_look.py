"""Looks at the hosts and holds what is seen against the wish: the first half of `enable-ats`. Writes nothing."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from vsphere_ml.core import ats_record, ats_versions
from vsphere_ml.core.ats_facts import facts
from vsphere_ml.core.ats_plan import Case, HostPlan, Leave, plan
from vsphere_ml.core.ats_wish import connectx, wishes
from vsphere_ml.core.errors import NotPossible
from vsphere_ml.core.host_events import Asking
from vsphere_ml.core.host_ports import see_one
from vsphere_ml.flows import boot
from vsphere_ml.flows.host_firmware import Doors
from vsphere_ml.flows.host_walk import Patience
from vsphere_ml.flows.plan import compare, look

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vsphere_ml.core.ats import HostFacts
    from vsphere_ml.core.ats_record import Record
    from vsphere_ml.core.ats_wish import HostWish
    from vsphere_ml.core.errors import VsmlError
    from vsphere_ml.core.esx import HostSight
    from vsphere_ml.core.events import Listener
    from vsphere_ml.core.host_events import HostListener
    from vsphere_ml.core.host_ports import Hosts, HostShells
    from vsphere_ml.core.inventory import HostRef, Inventory
    from vsphere_ml.core.ports import Clock, GuestPlace, Guests, VCenter
    from vsphere_ml.core.spec import ClusterSpec

ASKED_AT_ONCE = 8  # hosts


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What a run was asked for."""

    named: tuple[str, ...] = ()  # hosts by name; none: those of the cluster
    leave: Leave = field(default_factory=Leave)
    revert: bool = False
    dry_run: bool = False
    parallel: int = 1
    patience: Patience = field(default_factory=Patience)
    vcenter: frozenset[str] = frozenset()  # its own names and addresses


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """The edges that a run works through."""

    vcenter: VCenter
    hosts: Hosts
    shells: HostShells | None = None
    guests: Guests | None = None


@dataclass(slots=True)
class HostsLook:
    """Looks at hosts, as often as needed, for one wish."""

    spec: ClusterSpec
    site: Site
    task: Task
    tell: Listener
    tell_host: HostListener
    clock: Clock
    wishes: dict[str, HostWish] = field(default_factory=dict)  # by host
    inventory: Inventory | None = None
    doors: Doors | None = None

    def plans(self, why: str, wait_s: float = 0.0) -> tuple[HostPlan, ...]:
        """Return what is to be done to each host, by name, after a look at all of them.

        Guests that have a whole function may take `wait_s` seconds to answer: their VMs were just powered on.
        """
        self.inventory = look(self.spec, self.site.vcenter, tell=self.tell, clock=self.clock, why=why)
        compared = compare(self.spec, _in_service(self.inventory))
        records = self._records(self.inventory) if self.task.revert else {}
        wanted = wishes(self.spec, self.inventory, compared.plan.seats, self.task.named, records)
        if not wanted:
            raise self._no_hosts(compared.unseated)
        self.wishes = {wish.ref: wish for wish in wanted}
        self.doors = Doors(
            hosts=self.site.hosts,
            shells=self.site.shells,
            guests=self.site.guests,
            places=self._places(wanted, wait_s),
            wait_s=wait_s,
        )
        seen = self.site.hosts.see([wish.ref for wish in wanted])
        there = [seen[wish.ref] for wish in wanted if wish.ref in seen]
        with ThreadPoolExecutor(max_workers=ASKED_AT_ONCE) as pool:
            return tuple(pool.map(self._plan, there))

    def _records(self, inventory: Inventory) -> dict[HostRef, Record]:
        """Return what is written down on hosts: also where no node is now, values wait to come back."""
        seen = self.site.hosts.see([host.ref for host in inventory.hosts if connectx(host)])
        found = {ref: ats_record.parse(sight.record) for ref, sight in seen.items()}
        return {ref: record for ref, record in found.items() if record is not None}

    def again(self, host: HostPlan) -> HostFacts:
        """Return one host's facts as they are now, held against the same wish."""
        return self._plan(see_one(self.site.hosts, host.facts.host, host.name)).facts

    def _plan(self, sight: HostSight) -> HostPlan:
        if self.inventory is None or self.doors is None:
            raise AssertionError("nobody has looked yet")
        wish = self.wishes[sight.ref]
        self.tell_host(Asking(host=sight.name))
        record = ats_record.parse(sight.record)
        firmware = self.doors.read(wish, sight)
        case = Case(
            cluster=self.spec.name,
            nodes=[node.name for node in self.spec.nodes],
            facts=facts(wish, sight, firmware, self.inventory, record),
            sight=sight,
            record=record,
            leave=self.task.leave,
            revert=self.task.revert,
            vcenter=self.task.vcenter,
            unsupported=ats_versions.refusal(sight.version, sight.build, sight.cpu_vendor) or "",
            caution=ats_versions.caution(sight.version, sight.cpu_vendor) or "",
        )
        return plan(case)

    def _places(self, wanted: Sequence[HostWish], wait_s: float) -> dict[str, GuestPlace | VsmlError]:
        """Return where the guests are that have a port's whole function."""
        names = {port.guest for wish in wanted for port in wish.ports if port.guest}
        if not names:
            return {}
        deadline = boot.within(wait_s, self.clock)
        site = boot.first_look(self.spec, self.site.vcenter, _nobody, self.clock)
        found = boot.placed(self.spec, site, self.site.vcenter, deadline, only=names)
        return {**found.errors, **{place.name: place for place in found.places}}

    def _no_hosts(self, unseated: NotPossible | None) -> NotPossible:
        return NotPossible(
            f"no host is {self.spec.name}'s: none of its VMs stands, and no node finds a seat",
            code="ats.no-hosts",
            target=self.spec.name,
            hint="`vsml provision` first, or name hosts with --host",
            details=unseated.details if unseated is not None else (),
        )


def _in_service(inventory: Inventory) -> Inventory:
    """Return the site as if every host were in service: which ports are used does not change while one is not."""
    return replace(inventory, hosts=tuple(replace(host, connected=True, maintenance=False) for host in inventory.hosts))


def _nobody(_event: object) -> None:
    """Say nothing of the look that only finds the guests' addresses."""
