"""`vsml profiles`: what hosts offer, and how much of it is free, by vCenter's count where it counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.core.ports.vcenter import Scope
from vsphere_ml.core.report.capacity_report import asks, differences, list_capacity, sums, with_vcenter_counts
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from vsphere_ml.core.model.device_counts import DirectPathProfile
    from vsphere_ml.core.ports.vcenter import VCenter
    from vsphere_ml.core.report.capacity_report import CapacityRow, Sum

EVERY_HOST = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedProfiles:
    """What there is by host and by cluster, and in words where vCenter and vsml count differently."""

    hosts: tuple[CapacityRow, ...]
    clusters: tuple[Sum, ...]
    differences: tuple[str, ...]
    direct_path: tuple[DirectPathProfile, ...] = ()  # devices that have a name in vCenter


def profiles(vcenter: VCenter, datacenter: str | None, host: str = EVERY_HOST) -> OfferedProfiles:
    """Return what the hosts of this name or glob offer. Clusters are asked about only when every host is meant.

    Raises VSphereError, and NotPossible `site.not-found` when no host is meant.
    """
    inventory = vcenter.read_site(Scope(datacenter=datacenter, direct_path=True))
    found = list_capacity(inventory, host)
    counts = vcenter.counts(asks(found, inventory, clusters=host == EVERY_HOST))
    rows = with_vcenter_counts(found, counts)
    return OfferedProfiles(
        hosts=rows,
        clusters=sums(rows, counts),
        differences=tuple(differences(rows)),
        direct_path=vcenter.direct_path_profiles(),
    )
