"""Waits until guests are up: an address, host keys that somebody vouches for, an answer over SSH."""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING

from vsphere_ml.core.errors import VsmlError
from vsphere_ml.core.model.spec import HostKeys
from vsphere_ml.flows.guests import guests as of_guests
from vsphere_ml.flows.guests.visit import NOT_UP_YET, run_with_retry
from vsphere_ml.flows.site.read_site import read_site
from vsphere_ml.guest.events import Waiting
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from vsphere_ml.core.model.guest import Shell
    from vsphere_ml.core.model.inventory import Inventory
    from vsphere_ml.core.model.spec import ClusterSpec
    from vsphere_ml.core.ports.vcenter import Clock, Guests
    from vsphere_ml.flows.guests.guests import GuestTargets
    from vsphere_ml.flows.run_context import RunContext
    from vsphere_ml.guest.events import GuestListener

PAUSE_S = 2.0


@dataclass(frozen=True, slots=True)
class _Deadline:
    """The end of one wait for everything that a guest needs to be entered."""

    clock: Clock
    at: float
    wait_s: float

    @property
    def left_s(self) -> float:
        return max(0.0, self.at - self.clock.now())


def start_deadline(wait_s: float, clock: Clock) -> _Deadline:
    return _Deadline(clock, clock.now() + wait_s, wait_s)


def wait_ready(
    run: RunContext,
    inventory: Inventory,
    guests: Guests,
    deadline: _Deadline,
    *,
    only: Collection[str] = (),
    notify: GuestListener = lambda _event: None,
) -> GuestTargets:
    """Return the guests that have an address and a host key somebody vouches for, and why others have not.

    All host keys must be known before the first step: the nodes' mesh is made of them.
    """
    found = wait_address(run, inventory, deadline, guests=guests, only=only, notify=notify)
    return wait_host_keys(found, guests, deadline.left_s)


def wait_address(
    run: RunContext,
    inventory: Inventory,
    deadline: _Deadline,
    *,
    guests: Guests | None = None,
    only: Collection[str] = (),
    notify: GuestListener = lambda _event: None,
) -> GuestTargets:
    """Return the guests once they have an address, and with `guests` once they have published their host keys."""
    watch = _Watch(run.spec, guests, notify)
    found = of_guests.find(run.spec, inventory, only)
    while (late := watch.late(found)) and deadline.left_s >= PAUSE_S:
        deadline.clock.sleep(PAUSE_S)
        inventory = _reread_late_vms(run, inventory, late)
        found = of_guests.find(run.spec, inventory, only)
    return _with_late_reasons(found, late, deadline)


def wait_host_keys(found: GuestTargets, guests: Guests, deadline_s: float) -> GuestTargets:
    """Return the guests whose host keys are known; one that nothing vouches for yet is gone to first."""
    unknown = [place for place in found.places if not guests.vouched(place)]
    outcomes = run_with_retry(guests, unknown, _enter, deadline_s)
    failed = {name: _with_last_state(found, name, outcome) for name, outcome in outcomes.items() if _is_error(outcome)}
    places = tuple(place for place in found.places if place.name not in failed)
    return replace(found, places=places, errors={**found.errors, **failed})


@dataclass(slots=True)
class _Watch:
    """Sees which guests are late, and reports each reason once."""

    spec: ClusterSpec
    guests: Guests | None
    notify: GuestListener
    reported: dict[str, str] = field(default_factory=dict)

    def late(self, found: GuestTargets) -> Mapping[str, str]:
        """Return what each guest is waited for."""
        late = dict(self._reasons(found))
        for name, reason in late.items():
            if self.reported.get(name) != reason:
                self.reported[name] = reason
                self.notify(Waiting(node=name, reason=reason))
        return late

    def _reasons(self, found: GuestTargets) -> Iterator[tuple[str, str]]:
        access = self.spec.guest
        for name, error in found.errors.items():
            if error.code == "guest.no-address":
                yield name, f"no address yet; VMware Tools: {of_guests.tools(found.vms[name])}"
        if self.guests is None or access.host_keys is not HostKeys.PUBLISHED:
            return
        for place in found.places:
            if place.name not in access.fingerprints and not self.guests.vouched(place):
                tools = of_guests.tools(found.vms[place.name])
                yield place.name, f"{place.address}: no host keys published yet; VMware Tools: {tools}"


def _reread_late_vms(run: RunContext, inventory: Inventory, late: Collection[str]) -> Inventory:
    """Return the picture with late VMs as they are now; those of ours can be read without a look at the site."""
    seen = {vm.ref: vm for vm in run.vcenter.read(late)}
    if len(seen) < len(late):
        return read_site(replace(run, notify=_nobody), why="again", devices=False)
    return replace(inventory, vms=tuple(seen.get(vm.ref, vm) for vm in inventory.vms))


def _with_late_reasons(found: GuestTargets, late: Mapping[str, str], deadline: _Deadline) -> GuestTargets:
    """Return the guests with how long those without an address were waited for."""
    for name in late:
        if name in found.errors and deadline.wait_s:
            found.errors[name].details += (f"waited {deadline.wait_s:g} s",)
    return found


def _with_last_state(found: GuestTargets, name: str, error: object) -> VsmlError:
    """Return the error with what vCenter said of the guest last."""
    assert isinstance(error, VsmlError)  # noqa: S101 - sorted out before
    vm = found.vms[name]
    error.details += (f"VMware Tools: {of_guests.tools(vm)}; address in vCenter: {vm.guest_ip or 'none'}",)
    if error.code in NOT_UP_YET:
        error.details += (of_guests.on_its_console(found.first_boot),)
    return error


def _enter(_shell: Shell) -> None:
    """Do nothing: to be let in is what was wanted."""


def _is_error(outcome: object) -> bool:
    return isinstance(outcome, VsmlError)


def _nobody(_event: object) -> None:
    """Say nothing of the looks that only wait for an address."""


def read_running_site(run: RunContext) -> Inventory:
    """Return the site without what only placing nodes needs."""
    return read_site(run, why="first", devices=False)
