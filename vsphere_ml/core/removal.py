"""What `vsml destroy` takes away: only what carries the cluster's mark."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    from vsphere_ml.core.inventory import Inventory
    from vsphere_ml.core.plan import Plan
    from vsphere_ml.core.spec import ClusterSpec


def plan_destroy(wanted: ClusterSpec | str, inventory: Inventory, *, only: Collection[str] = ()) -> Plan:
    """Return what removes a cluster (by its spec or its name), or only some of its VMs."""
    raise NotImplementedError
