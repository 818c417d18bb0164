"""Published figures, each with its source and its conditions: to stand beside one's own, never to be beaten by them."""

from __future__ import annotations

from vsphere_ml.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedResult:
    """One published figure."""

    what: str
    conditions: str
    figure: str
    source: str


_HOROVOD = "https://github.com/horovod/horovod/blob/master/docs/benchmarks.rst"
_DLPERF = "https://github.com/Oneflow-Inc/DLPerf"
_NCCL_TESTS = "https://github.com/NVIDIA/nccl-tests/issues"

PUBLISHED = (
    PublishedResult(
        what="scaling, Inception V3 and ResNet-101",
        conditions="128 servers × 4 Pascal GPUs, 25 GbE RoCE, Horovod; against one GPU",
        figure="90 %",
        source=_HOROVOD,
    ),
    PublishedResult(
        what="scaling, VGG-16",
        conditions="128 servers × 4 Pascal GPUs, 25 GbE RoCE, Horovod; against one GPU",
        figure="68 %",
        source=_HOROVOD,
    ),
    PublishedResult(
        what="throughput, ResNet-101 batch 64",
        conditions="16 Pascal GPUs, Horovod",
        figure="1656.82 images/s",
        source=_HOROVOD,
    ),
    PublishedResult(
        what="scaling, ResNet-50 synthetic",
        conditions="AWS p3.16xlarge, 8 V100 a node, 25 Gbit/s; 16, 32, 64, 128 GPUs against one",
        figure="91.9, 85.5, 84.5, 80.4 %",
        source="https://github.com/horovod/horovod/issues/779",
    ),
    PublishedResult(
        what="scaling, ResNet-50 fp32 batch 128",
        conditions="2 and 4 nodes × 8 V100, EDR 100 Gbit/s, TensorFlow + Horovod, 2020; against one node",
        figure="93.7 and 87.4 %",
        source=_DLPERF,
    ),
    PublishedResult(
        what="scaling, ResNet-50",
        conditions="the same machines, PyTorch DDP + DALI, 2020; against one node",
        figure="99.0 and 94.5 %",
        source=_DLPERF,
    ),
    PublishedResult(
        what="scaling, BERT-base fp32 batch 32",
        conditions="2 and 4 nodes × 8 V100, EDR 100 Gbit/s, TensorFlow + Horovod, 2020; against one node",
        figure="88.9 and 86.3 %",
        source=_DLPERF,
    ),
    PublishedResult(
        what="virtual against bare metal, MLPerf Inference v3.0",
        conditions="vSphere; 4 × A100 SXM 80 GB, and 2 × H100 PCIe; 16 of 128 logical cores",
        figure="94 to 105 %",
        source="https://blogs.vmware.com/performance/?p=5542",
    ),
    PublishedResult(
        what="ib_write_bw with GPUDirect RDMA",
        conditions="two pods, 100 GbE RoCE, RDMA MTU 1024, 64 KiB and more",
        figure="92.39 Gbit/s",
        source="https://github.com/NVIDIA/cloud-native-docs (gpu-operator-rdma.rst)",
    ),
    PublishedResult(
        what="NCCL all-reduce, bus bandwidth",
        conditions="12 nodes, one HDR 200 Gbit/s NIC each; GPU and NIC on one PCIe switch, with GPUDirect RDMA",
        figure="24 GB/s expected by NVIDIA; 16 GB/s is normal where the NIC hangs off the CPU",
        source="https://github.com/NVIDIA/nccl/issues/412",
    ),
    PublishedResult(
        what="NCCL all-reduce, bus bandwidth",
        conditions="2 × 8 A100, 4 × HDR 200 Gbit/s",
        figure="86 of 100 GB/s",
        source=f"{_NCCL_TESTS}/175",
    ),
    PublishedResult(
        what="NCCL all-reduce, bus bandwidth",
        conditions="NDR 400 Gbit/s, per NIC, NCCL_ALGO=RING on two nodes",
        figure="46 to 48 GB/s expected by NVIDIA",
        source=f"{_NCCL_TESTS}/290",
    ),
    PublishedResult(
        what="bandwidth between nodes",
        conditions="Lambda Hyperplane V100, 4 × 100 Gbit/s InfiniBand, GPUDirect RDMA",
        figure="42 of 50 GB/s",
        source="Lambda, A Gentle Introduction to Multi GPU and Multi Node Distributed Training",
    ),
)
# Looked for and not found, so that nobody takes the silence for a figure.
UNPUBLISHED = (
    "two A100 hosts with one 100 GbE ConnectX-6 Dx each, NCCL",
    "training with vGPU, GPUDirect RDMA and ATS against without",
    "A100-40C vGPU over several VMs with Horovod",
)
