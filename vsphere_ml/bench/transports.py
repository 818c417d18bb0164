"""What a transport asks NCCL for, as variables, and what guests must have for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.bench.record import Transport
from vsphere_ml.core.errors import NotPossible

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from vsphere_ml.bench.survey import Surveyed


def variables(transport: Transport, interface: str, surveyed: Sequence[Surveyed]) -> Mapping[str, str]:
    """Return NCCL's settings. NotPossible `bench.no-rdma` when RDMA is asked for where it cannot be.

    Without a GPU NCCL is not used and reads none of them.
    """
    log = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,NET,P2P,SHM", "NCCL_SOCKET_IFNAME": f"={interface}"}
    if transport is Transport.TCP:
        return log | {"NCCL_IB_DISABLE": "1"}
    lacking = [each.node for each in surveyed if not each.rdma or not each.gpus]
    if lacking:
        raise NotPossible(
            f"{', '.join(lacking)}: {transport.value} needs an RDMA device and a GPU in each guest",
            code="bench.no-rdma",
            target=lacking[0],
            hint="`vsml verify` tells what a node has; --transport tcp needs neither",
        )
    return log | _rdma(surveyed) | _gpudirect(transport)


def _rdma(surveyed: Sequence[Surveyed]) -> dict[str, str]:
    """Return the device and its GID. NCCL before 2.21 does not find a RoCE v2 GID itself."""
    devices = {each.rdma[0] for each in surveyed}
    indexes = {each.roce_v2 for each in surveyed}
    device = {"NCCL_IB_HCA": f"={devices.pop()}"} if len(devices) == 1 else {}
    index = next(iter(indexes))
    return device | ({"NCCL_IB_GID_INDEX": index} if len(indexes) == 1 and index else {})


def _gpudirect(transport: Transport) -> dict[str, str]:
    if transport is Transport.ROCE:
        return {"NCCL_NET_GDR_LEVEL": "LOC"}
    # Reading from the GPU for sending is off by default where there is no NVLink (NCCL 2.4.2 and newer).
    return {"NCCL_NET_GDR_LEVEL": "SYS", "NCCL_NET_GDR_READ": "1"}
