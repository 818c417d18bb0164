"""Decides where each node goes and with which devices."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vsphere_ml.core.inventory import Inventory
    from vsphere_ml.core.seats import Placement
    from vsphere_ml.core.spec import ClusterSpec


def solve(spec: ClusterSpec, inventory: Inventory) -> Placement:
    """Return every node's seat; NotPossible `placement.no-seat` tells every host's reason."""
    raise NotImplementedError
