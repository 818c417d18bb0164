"""Finds a spec's names in an inventory."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vsphere_ml.core.inventory import Inventory
    from vsphere_ml.core.seats import Ground
    from vsphere_ml.core.spec import ClusterSpec


def resolve(spec: ClusterSpec, inventory: Inventory) -> Ground:
    """Return what the spec's names stand for; NotPossible tells every name that is missing or ambiguous."""
    raise NotImplementedError
