"""MPICH's mpirun, which is Hydra: its options are its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.bench.launch.launchers.launcher import Launcher, environment
from vsphere_ml.bench.model.job import MPICH
from vsphere_ml.bench.model.launcher_names import Backend, LauncherName

if TYPE_CHECKING:
    from vsphere_ml.bench.model.job import Job

# MPICH, src/pm/hydra/proxy/pmip_cb.c.
SETS = ("PMI_RANK", "PMI_SIZE", "PMI_ID", "PMI_FD", "PMI_PORT", "MPI_LOCALRANKID", "MPI_LOCALNRANKS")


def _hydra(job: Job) -> tuple[str, ...]:
    """Return how MPICH's Hydra starts the job. It sends the variables over its own connections, not by ssh."""
    by_ssh = ("-launcher", "ssh", "-launcher-exec", f"{job.folder}/bin/ssh", "-disable-x")
    return (job.runtime.mpirun, *by_ssh, *start_by_hydra(job, f"{job.folder}/hosts", ()))


def start_by_hydra(job: Job, hosts: str, of_image: tuple[str, ...]) -> tuple[str, ...]:
    """Return Hydra's options for the nodes and ranks; `of_image` are variables that ranks get besides, by name."""
    exported = ",".join(sorted({*of_image, *environment(job), *variables(job), *job.variables}))
    where = ("-f", hosts, "-iface", job.interface, "-bind-to", "none")
    return (*where, "-np", str(job.ranks), "-genvlist", exported, *job.command)


def variables(job: Job) -> dict[str, str]:
    """Return the settings of MPICH's ranks: TCP by UCX, over the chosen interface. Within a node it has its own way."""
    return {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": job.interface}


MPIRUN = Launcher(
    name=LauncherName.MPIRUN,
    backends=(Backend.MPI, Backend.NCCL),
    mpi=(MPICH,),
    command=_hydra,
    variables=variables,
    sets=SETS,
)
