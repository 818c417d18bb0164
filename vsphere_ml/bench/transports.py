"""What a transport asks NCCL for, as variables, and what guests must have for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.bench import rdma
from vsphere_ml.bench.record import Transport
from vsphere_ml.core.errors import NotPossible

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from vsphere_ml.bench.survey import Surveyed


def variables(transport: Transport, interface: str, surveyed: Sequence[Surveyed]) -> Mapping[str, str]:
    """Return NCCL's settings.

    NotPossible `bench.no-rdma` or `bench.rdma-differs` when RDMA is asked for where it cannot be. Without a GPU NCCL is
    not used and reads none of them.
    """
    log = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,NET,P2P,SHM", "NCCL_SOCKET_IFNAME": f"={interface}"}
    if transport is Transport.TCP:
        return log | {"NCCL_IB_DISABLE": "1"}
    without = [each.node for each in surveyed if not each.gpus]
    if without:
        raise NotPossible(
            f"{', '.join(without)}: {transport.value} is NCCL's way, and NCCL needs a GPU in each guest",
            code="bench.no-rdma",
            target=without[0],
            hint="`vsml verify` tells what a node has; --transport tcp needs none",
        )
    ports, index = rdma.common({each.node: rdma.rails(each.ports) for each in surveyed})
    # NCCL before 2.21 does not find a RoCE v2 GID itself.
    return log | {"NCCL_IB_HCA": f"={','.join(ports)}", "NCCL_IB_GID_INDEX": str(index)} | _gpudirect(transport)


def _gpudirect(transport: Transport) -> dict[str, str]:
    if transport is Transport.ROCE:
        return {"NCCL_NET_GDR_LEVEL": "LOC"}
    # Reading from the GPU for sending is off by default where there is no NVLink (NCCL 2.4.2 and newer).
    return {"NCCL_NET_GDR_LEVEL": "SYS", "NCCL_NET_GDR_READ": "1"}
