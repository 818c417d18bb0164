"""What host and VM together decide, told with the plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.core.ats_versions import refusal
from vsphere_ml.core.legality.rule import Words
from vsphere_ml.core.profiles import read
from vsphere_ml.core.versions import numbers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vsphere_ml.core.inventory import Host
    from vsphere_ml.core.seats import Seat

_SXM = frozenset({"A100X", "A100DX", "H100XM", "H100XL", "H100XS", "H200X", "V100X", "V100DX"})
_DOCUMENTED = frozenset({7, 8})


def no_ats(seat: Seat, host: Host) -> Iterator[Words]:
    """Yield why GPU and NIC cannot exchange data by ATS on this host."""
    if seat.nic is not None and seat.node.peer_to_peer:
        why = refusal(host.version, host.build, host.cpu_vendor)
        if why:
            yield Words(f"{host.name}: {why}; GPUDirect RDMA wants ATS")


def sxm_elsewhere(seat: Seat, host: Host) -> Iterator[Words]:
    profile = read(seat.profile)
    major = next(iter(numbers(host.version)), 0)
    if profile is not None and profile.board in _SXM and len(seat.gpus) > 1 and major not in _DOCUMENTED:
        yield Words(
            f"{host.name}: several vGPUs of an SXM board are documented for ESXi 7 and 8, not for {host.version}"
        )
