"""RoCE v2 between the hosts' memories."""

from __future__ import annotations

from vsphere_ml.bench.model.transports.transport_spec import IB, IB_GPUDIRECT, INSTALL_PERFTEST, TransportSpec

SPEC = TransportSpec(
    rdma=True,
    nccl={"NCCL_NET_GDR_LEVEL": "LOC"},
    carriers=frozenset({IB, IB_GPUDIRECT}),
    link_tool="ib_write_bw",
    install=INSTALL_PERFTEST,
)
