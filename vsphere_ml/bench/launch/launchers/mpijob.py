"""mpirun in an MPIJob's launcher, Open MPI's or MPICH's: the operator's host file, the image's `ssh` and variables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.bench.launch.launchers import mpich, openmpi
from vsphere_ml.bench.launch.launchers.launcher import Launcher, environment
from vsphere_ml.bench.model.job import MPICH, OPEN_MPI, RunIn
from vsphere_ml.bench.model.launcher_names import Backend, LauncherName

if TYPE_CHECKING:
    from vsphere_ml.bench.model.job import Job

HOST_FILE = "/etc/mpi/hostfile"  # that mpi-operator v0.8.2 mounts into the launcher
# What sshd does not hand on of the image's variables.
_OF_IMAGE = ("LD_LIBRARY_PATH", "PATH")
# The version is not known before the pods run, and shared memory has another name in 4 than in 5: what is no TCP
# between nodes is left out by name, the rest stays.
_OVER_TCP = ("--mca", "pml", "ob1", "--mca", "btl", "^openib,uct,ofi,usnic")


def _mpirun(job: Job) -> tuple[str, ...]:
    names = {*_OF_IMAGE, *environment(job), *job.variables} - variables(job).keys()
    exported = [word for name in sorted(names) for word in ("-x", name)]
    # `--hostfile` and not a variable: Open MPI 5 ignores OMPI_MCA_orte_default_hostfile, and runs every rank here.
    start = (job.runtime.mpirun, "-np", str(job.ranks), "--hostfile", HOST_FILE)
    link = openmpi.UCX if job.over_ucx else (*_OVER_TCP, "--mca", "btl_tcp_if_include", job.interface)
    return (*start, "--map-by", "slot", "--bind-to", "none", *link, *exported, *job.command)


def variables(job: Job) -> dict[str, str]:
    """Return mpirun's variables by both families' names, beside those of the operator and the job's manifest."""
    interfaces = {"OMPI_MCA_oob_tcp_if_include": job.interface, "PRTE_MCA_prte_if_include": job.interface}
    root = {f"{family}_ALLOW_RUN_AS_ROOT{confirm}": "1" for family in ("OMPI", "PRTE") for confirm in ("", "_CONFIRM")}
    return interfaces | root


def _hydra(job: Job) -> tuple[str, ...]:
    return (job.runtime.mpirun, *mpich.start_by_hydra(job, HOST_FILE, _OF_IMAGE))


OVER_OPEN_MPI = Launcher(
    name=LauncherName.MPIRUN,
    backends=(Backend.MPI, Backend.NCCL),
    mpi=(OPEN_MPI,),
    run_in=(RunIn.KUBERNETES,),
    command=_mpirun,
    variables=variables,
    sets=openmpi.SETS,
)
OVER_MPICH = Launcher(
    name=LauncherName.MPIRUN,
    backends=(Backend.MPI, Backend.NCCL),
    mpi=(MPICH,),
    run_in=(RunIn.KUBERNETES,),
    command=_hydra,
    variables=mpich.variables,
    sets=mpich.SETS,
)
