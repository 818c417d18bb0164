"""What a site is after changes, by the site in memory that the contract tests keep honest."""

from __future__ import annotations

import re
from itertools import count
from typing import TYPE_CHECKING

from tests.fakes.site import FakeVCenter
from vsphere_ml.core.ports.vcenter import Scope

if TYPE_CHECKING:
    from collections.abc import Iterable

    from vsphere_ml.core.model.inventory import Inventory
    from vsphere_ml.core.plan.changes import Change


def applied(changes: Iterable[Change], site: Inventory, *, from_far: bool = False) -> Inventory:
    """Return the site after these changes; `from_far` makes ESXi take the last free GPU instead of the first."""
    vcenter = FakeVCenter(site, gpus_from_far=from_far)
    vcenter._physics.workshop.numbers = count(1 + _highest_number(site))
    vcenter.read_site(Scope(owner="train"))
    for change in changes:
        (update,) = vcenter.wait(vcenter.start([change]), 0)
        assert update.done, change
        assert update.error is None, update.error
    return vcenter.inventory


def _highest_number(site: Inventory) -> int:
    """Return the highest number that a reference or a device has, so that what is made later is told from it."""
    refs = (int(digits) for vm in site.vms for digits in re.findall(r"\d+", vm.ref))
    keys = (device.key for vm in site.vms if vm.settings for device in vm.settings.devices)
    return max(9000, *refs, *keys)
