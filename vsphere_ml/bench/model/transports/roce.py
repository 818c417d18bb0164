"""RoCE v2 from host memory, by a NIC's function: NCCL's, or MPI's by UCX where there is no GPU."""

from __future__ import annotations

from vsphere_ml.bench.model.transports.transport_spec import (
    IB,
    IB_GPUDIRECT,
    INSTALL_PERFTEST,
    UCX_RDMA,
    TransportSpec,
)

SPEC = TransportSpec(
    rdma=True,
    nccl={"NCCL_NET_GDR_LEVEL": "LOC"},
    carriers=frozenset({IB, IB_GPUDIRECT}),
    link_layer="RoCE",
    link_tool="ib_write_bw",
    install=INSTALL_PERFTEST,
    ucx=UCX_RDMA,
)
