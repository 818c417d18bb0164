"""What host and VM together decide, reported with the plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.core.catalog.ats_versions import refusal
from vsphere_ml.core.catalog.profiles import read
from vsphere_ml.core.catalog.versions import numbers
from vsphere_ml.core.model.placement import Pairing
from vsphere_ml.core.rules.rule import Words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vsphere_ml.core.model.inventory import Host
    from vsphere_ml.core.model.placement import NodePlacement

_SXM = frozenset({"A100X", "A100DX", "H100XM", "H100XL", "H100XS", "H200X", "V100X", "V100DX"})
_DOCUMENTED = frozenset({7, 8})


def no_ats(placement: NodePlacement, host: Host) -> Iterator[Words]:
    """Yield why GPU and NIC cannot exchange data by ATS on this host."""
    if placement.nic is not None and placement.node.peer_to_peer:
        why = refusal(host.version, host.build, host.cpu_vendor)
        if why:
            yield Words(f"{host.name}: {why}; GPUDirect RDMA wants ATS")


def gpus_by_esxi(placement: NodePlacement, host: Host) -> Iterator[Words]:
    """Yield that several vGPUs may come from other GPUs than the placement says; those of a device group are joined."""
    runs = placement.existing is not None and placement.existing.powered_on
    if (
        read(placement.profile) is None
        or len(placement.gpus) == 1
        or runs
        or placement.pairing in {Pairing.DEVICE_GROUP, Pairing.NVLINK}
    ):
        return
    if {gpu.address for gpu in host.gpus} == set(placement.gpus) and len(set(placement.gpus)) == len(placement.gpus):
        return
    policy = f" `{host.assignment_policy}`" if host.assignment_policy else ""
    farther = ", and farther from the NIC," if placement.nics else ""
    yield Words(
        f"which GPUs its {len(placement.gpus)} vGPUs come from is ESXi's choice, "
        f"by the host's assignment policy{policy}: they may be others{farther} than those shown"
    )


def sxm_elsewhere(placement: NodePlacement, host: Host) -> Iterator[Words]:
    profile = read(placement.profile)
    major = next(iter(numbers(host.version)), 0)
    if profile is not None and profile.board in _SXM and len(placement.gpus) > 1 and major not in _DOCUMENTED:
        yield Words(
            f"{host.name}: several vGPUs of an SXM board are documented for ESXi 7 and 8, not for {host.version}"
        )
