"""RDMA from host memory by VMware's PVRDMA adapter (vmw_pvrdma), whose packets leave the host as RoCE.

GPUDirect is not there: no document was found that has a GPU's memory registered with vmw_pvrdma.
"""

from __future__ import annotations

from vsphere_ml.bench.model.transports.transport_spec import IB, INSTALL_PERFTEST, UCX_RDMA, TransportSpec

SPEC = TransportSpec(
    rdma=True,
    paravirtual=True,
    nccl={"NCCL_NET_GDR_LEVEL": "LOC"},
    carriers=frozenset({IB}),
    link_tool="ib_write_bw by PVRDMA",
    install=INSTALL_PERFTEST,
    ucx=UCX_RDMA,
)
