"""MPICH's mpirun, which is Hydra: its options are its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.bench.launch.launchers.launcher import Launcher, environment
from vsphere_ml.bench.model.job import MPICH
from vsphere_ml.bench.model.launcher_names import Backend, LauncherName

if TYPE_CHECKING:
    from vsphere_ml.bench.model.job import Job


def _hydra(job: Job) -> tuple[str, ...]:
    """Return how MPICH's Hydra starts the job. It sends the variables over its own connections, not by ssh."""
    exported = ",".join(sorted({**environment(job), **_variables(job), **job.variables}))
    by_ssh = ("-launcher", "ssh", "-launcher-exec", f"{job.folder}/bin/ssh", "-disable-x")
    where = ("-f", f"{job.folder}/hosts", "-iface", job.interface, "-bind-to", "none")
    return (job.runtime.mpirun, *by_ssh, *where, "-np", str(job.ranks), "-genvlist", exported, *job.command)


def _variables(job: Job) -> dict[str, str]:
    """Return what MPICH's ranks are told: TCP by UCX, over the chosen interface. Within a node it has its own way."""
    return {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": job.interface}


MPIRUN = Launcher(
    name=LauncherName.MPIRUN,
    backends=(Backend.MPI, Backend.NCCL),
    mpi=(MPICH,),
    command=_hydra,
    variables=_variables,
)
