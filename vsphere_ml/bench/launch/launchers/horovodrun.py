"""horovodrun 0.28.1, over Gloo and over Open MPI.

It switches host key checking off on its own command line of ssh. It finds our `ssh` first, and of an option given twice
OpenSSH takes the first, so keys are checked all the same.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from vsphere_ml.bench.launch.launchers import openmpi
from vsphere_ml.bench.launch.launchers.launcher import Launcher, slots
from vsphere_ml.bench.model.job import MPICH, OPEN_MPI
from vsphere_ml.bench.model.launcher_names import Backend, LauncherName
from vsphere_ml.core.errors import NotPossible

if TYPE_CHECKING:
    from vsphere_ml.bench.model.job import Job

# How long ranks wait for each other: horovodrun's own 30 s are less than a busy guest takes to read TensorFlow in.
EXIT_TIMEOUT_S = 180
# Horovod 0.28.1, horovod/runner/gloo_run.py. It writes a rank's place before the variables that it was given, so one of
# these would be that of every rank.
_SETS_OVER_GLOO = (
    *("HOROVOD_RANK", "HOROVOD_SIZE", "HOROVOD_LOCAL_RANK", "HOROVOD_LOCAL_SIZE", "HOROVOD_CROSS_RANK"),
    *("HOROVOD_CROSS_SIZE", "HOROVOD_HOSTNAME", "HOROVOD_CONTROLLER", "HOROVOD_CPU_OPERATIONS", "HOROVOD_GLOO_IFACE"),
    *("HOROVOD_GLOO_RENDEZVOUS_ADDR", "HOROVOD_GLOO_RENDEZVOUS_PORT", "NCCL_SOCKET_IFNAME"),
)


def _horovodrun(job: Job, *how: str) -> tuple[str, ...]:
    start = (job.runtime.python, "-m", "horovod.runner.launch", *how, "--disable-cache")
    return (*start, *_interface_option(job), "-np", str(job.ranks), *_where(job), *job.command)


def _where(job: Job) -> tuple[str, ...]:
    """Return the nodes; an elastic job asks for them again and again."""
    if not job.least_nodes:
        return ("-H", ",".join(slots(job)))
    least, most = str(job.least_nodes * job.slots), str(job.ranks)
    return ("--min-np", least, "--max-np", most, "--host-discovery-script", f"{job.folder}/nodes.sh")


def _interface_option(job: Job) -> tuple[str, ...]:
    """Return the interface: with it, horovodrun neither guesses one nor starts a service on every node to find it.

    Alone on one node horovodrun 0.28.1 insists on an interface that leads to itself.
    """
    return ("--network-interface", job.interface) if len(job.nodes) > 1 else ()


def _over_gloo(job: Job) -> tuple[str, ...]:
    return _horovodrun(job, "--gloo")


def _for_gloo(job: Job) -> dict[str, str]:
    """Return how long ranks wait. An elastic job keeps Horovod's own time, after which it goes on without a node."""
    waits = {"HOROVOD_START_TIMEOUT": str(EXIT_TIMEOUT_S)}
    return waits if job.least_nodes else waits | {"HOROVOD_GLOO_TIMEOUT_SECONDS": str(EXIT_TIMEOUT_S)}


def _over_mpi(job: Job) -> tuple[str, ...]:
    if job.runtime.mpi != OPEN_MPI:
        raise NotPossible(
            f"vsml starts ranks over {job.runtime.mpi} by its mpirun alone",
            code="bench.horovodrun-mpi",
            target=job.runtime.mpirun,
            hint="--launcher mpirun",
        )
    if job.runtime.mpi_version >= (openmpi.PRRTE,):
        version = ".".join(map(str, job.runtime.mpi_version))
        raise NotPossible(
            f"horovodrun 0.28.1 cannot start Open MPI {version}: it writes `-bind-to none`, "
            "which Open MPI 5 takes for the program to run",
            code="bench.horovodrun-mpi",
            target=job.runtime.mpirun,
            hint="--launcher mpirun, or --backend gloo",
        )
    # It writes the rest of what Open MPI needs itself, and Open MPI takes no setting twice.
    return _horovodrun(job, "--mpi", f"--mpi-args={shlex.join(openmpi.prefix(job))}")


OVER_GLOO = Launcher(
    name=LauncherName.HOROVODRUN,
    backends=(Backend.GLOO,),
    command=_over_gloo,
    variables=_for_gloo,
    elastic=True,
    tag=r"\[\d+\]<std(?:out|err)>:",
    sets=_SETS_OVER_GLOO,
)
OVER_MPI = Launcher(
    name=LauncherName.HOROVODRUN,
    backends=(Backend.MPI,),
    mpi=(OPEN_MPI, MPICH),
    command=_over_mpi,
    variables=openmpi.variables,
    sets=(*openmpi.SETS, "NCCL_SOCKET_IFNAME"),  # horovod/runner/mpi_run.py
)
