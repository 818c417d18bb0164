"""PVRDMA against TCP, RoCE and GPUDirect on one to four nodes, as VMware's part 1 on Horovod and PVRDMA set out to."""

from __future__ import annotations

from vsphere_ml.bench.model.launcher_names import LauncherName
from vsphere_ml.bench.model.record import Workload
from vsphere_ml.bench.model.transports import Transport
from vsphere_ml.bench.studies.study_design import StudyDesign

DESIGN = StudyDesign(
    name="pvrdma",
    question="what RDMA by a paravirtual adapter is worth against TCP, and against a NIC's own function",
    transports=tuple(Transport),
    workloads=(Workload.ALLREDUCE, Workload.TRAIN),
    launcher=LauncherName.MPIRUN,  # whose MPI goes by RDMA from host memory, without a GPU
    caveats=(
        "VMs of one ESXi host exchange by PVRDMA through the host's memory: place the nodes on different hosts",
        "no document was found that has GPUDirect by a PVRDMA adapter: `gpudirect` wants a NIC's function",
    ),
)
