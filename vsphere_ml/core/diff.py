"""Compares a placement with what stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vsphere_ml.core.inventory import Inventory
    from vsphere_ml.core.plan import Plan
    from vsphere_ml.core.seats import Placement
    from vsphere_ml.core.spec import ClusterSpec


def diff(spec: ClusterSpec, placement: Placement, inventory: Inventory) -> Plan:
    """Return what turns the site into the placement; an empty plan when it already is."""
    raise NotImplementedError
