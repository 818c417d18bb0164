"""Two stacks over the same TCP links: Horovod's Gloo, and MPI. It needs no RDMA and no GPU."""

from __future__ import annotations

from vsphere_ml.bench.model.launcher_names import Backend, LauncherName
from vsphere_ml.bench.model.record import Workload
from vsphere_ml.bench.studies.study_design import StudyDesign

DESIGN = StudyDesign(
    name="tcp-stacks",
    question="what another library gets through the same TCP links",
    stacks=((LauncherName.HOROVODRUN, Backend.GLOO), (LauncherName.MPIRUN, Backend.MPI)),
    workloads=(Workload.ALLREDUCE, Workload.TRAIN),
    caveats=("both columns are TCP: nothing here tells how RDMA does",),
)
