"""What a transport asks NCCL for, as variables, and what guests must have for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.bench.probe import rdma
from vsphere_ml.core.errors import NotPossible

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from vsphere_ml.bench.model.transports import Transport
    from vsphere_ml.bench.probe.survey import Surveyed


def variables(
    transport: Transport, interface: str, surveyed: Sequence[Surveyed], traffic_class: int | None = None
) -> Mapping[str, str]:
    """Return NCCL's settings; `traffic_class` is what RDMA packets are to be marked with.

    NotPossible `bench.no-rdma` or `bench.rdma-differs` when RDMA is asked for where it cannot be. Without a GPU NCCL is
    not used and reads none of them.
    """
    log = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,NET,P2P,SHM", "NCCL_SOCKET_IFNAME": f"={interface}"}
    if not transport.spec.rdma:
        return log | dict(transport.spec.nccl)
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
    gid = {} if index is None else {"NCCL_IB_GID_INDEX": str(index)}
    found = {"NCCL_IB_HCA": f"={','.join(ports)}"} | gid | _traffic_class(traffic_class)
    return log | found | dict(transport.spec.nccl)


def _traffic_class(byte: int | None) -> dict[str, str]:
    """Return what puts NCCL's packets into the lossless class: NCCL_IB_TC is 0 by default, which is DSCP 0.

    MPI needs nothing of the kind: its messages go by TCP here.
    """
    return {} if byte is None else {"NCCL_IB_TC": str(byte)}
