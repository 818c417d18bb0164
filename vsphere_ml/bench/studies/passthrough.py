"""vGPU and DirectPath passthrough, each with and without GPUDirect RDMA.

F. Denneman's Multi-GPU part of *vSphere ML Accelerator Spectrum Deep Dive* has VMware's HPC team compare both
data paths with GPUs by passthrough, and that GPUDirect RDMA works with vGPUs too since 7.0 U2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.bench.model.record import Workload
from vsphere_ml.bench.model.transports import Transport
from vsphere_ml.bench.studies.study_design import Factor, StudyDesign

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vsphere_ml.bench.probe.survey import Surveyed
    from vsphere_ml.core.model.spec import ClusterSpec

VGPU, PASSTHROUGH = "vgpu", "passthrough"


def find_level(spec: ClusterSpec, _surveyed: Sequence[Surveyed]) -> str:
    """Return how the cluster file gives every node its GPUs; empty where nodes differ."""
    kinds = {PASSTHROUGH if node.gpu.is_passthrough else VGPU for node in spec.nodes if node.gpu.count}
    return kinds.pop() if len(kinds) == 1 else ""


DESIGN = StudyDesign(
    name="passthrough",
    question="what a vGPU costs against a GPU by passthrough, with and without GPUDirect RDMA",
    transports=(Transport.ROCE, Transport.GPUDIRECT),
    factor=Factor(
        option="gpu",
        title="GPU",
        levels=(VGPU, PASSTHROUGH),
        find_level=find_level,
        unknown=(
            "the cluster file gives some nodes GPUs by passthrough and others vGPUs, or none: one study is of one kind",
            "a cluster file for each kind, and the same --results",
        ),
        change={
            level: f'a cluster file whose nodes have gpu = {{ kind = "{level}" }}, `vsml provision` it, and this study '
            "with the same --results"
            for level in (VGPU, PASSTHROUGH)
        },
    ),
    workloads=(Workload.MEMCPY, Workload.NCCL, Workload.TRAIN),
)
