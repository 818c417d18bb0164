"""RoCE v2 from GPU memory: GPUDirect RDMA."""

from __future__ import annotations

from vsphere_ml.bench.model.transports.transport_spec import IB_GPUDIRECT, INSTALL_PERFTEST, TransportSpec

SPEC = TransportSpec(
    rdma=True,
    gpu_memory=True,
    # Reading from the GPU for sending is off by default where there is no NVLink (NCCL 2.4.2 and newer).
    nccl={"NCCL_NET_GDR_LEVEL": "SYS", "NCCL_NET_GDR_READ": "1"},
    carriers=frozenset({IB_GPUDIRECT}),
    link_tool="ib_write_bw from GPU memory",
    install=f"{INSTALL_PERFTEST}; build perftest with ./configure CUDA_H_PATH=/usr/local/cuda/include/cuda.h",
)
