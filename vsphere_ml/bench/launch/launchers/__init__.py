"""What starts the ranks: a file and a row of the table for each launcher.

The command is started with its variables and no others, so nothing of the operator's environment can reach a remote
command line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.bench.launch.launchers import horovodrun, mpich, mpijob, openmpi, ssh, torchrun
from vsphere_ml.bench.launch.launchers.launcher import environment, files
from vsphere_ml.bench.model.job import MARK
from vsphere_ml.bench.model.launcher_names import Backend
from vsphere_ml.core.errors import ConfigError, NotPossible
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from vsphere_ml.bench.launch.launchers.launcher import Launcher
    from vsphere_ml.bench.model.job import Job

LAUNCHERS = (
    horovodrun.OVER_GLOO,
    horovodrun.OVER_MPI,
    openmpi.MPIRUN,
    mpijob.OVER_OPEN_MPI,
    mpijob.OVER_MPICH,
    mpich.MPIRUN,
    torchrun.TORCHRUN,
    ssh.SSH,
    ssh.WITHOUT_LIBRARY,
)
# By these `workloads/rank.py` knows a rank before it looks for RANK and the like.
_RANK_NAMES = (
    *("HOROVOD_RANK", "HOROVOD_SIZE", "HOROVOD_LOCAL_RANK"),
    *("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"),
    *("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"),
)
_NAME_MPI = 'name one: [guest] settings = { mpirun = "/opt/openmpi/bin/mpirun" }'


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """How a job is started in its first guest. Files are by name, in the job's folder."""

    command: tuple[str, ...]
    variables: Mapping[str, str]
    files: Mapping[str, str]


def launch(job: Job) -> Launch:
    """Return how the job is started.

    NotPossible `bench.no-mpi` when the MPI it needs is not there, `bench.horovodrun-mpi` for one it cannot start.
    """
    launcher = _find(job)
    # A PATH that is asked for stands behind our `ssh`, which keeps host keys checked.
    requested = {name: value for name, value in job.variables.items() if name != "PATH"}
    return Launch(
        command=launcher.command(job),
        variables={**environment(job), **launcher.variables(job), **requested},
        files=files(job),
    )


def _find(job: Job) -> Launcher:
    """Return the launcher that was asked for, that of the guests' MPI where there are several."""
    asked = job.configuration
    here = [each for each in LAUNCHERS if job.runtime.within in each.run_in]
    named = [each for each in here if each.name == asked.launcher and asked.backend in each.backends]
    if not named:
        raise NotPossible(
            f"{asked.launcher} over {asked.backend} starts no ranks in {job.runtime.within}",
            code="bench.no-launcher",
            target=job.nodes[0].name,
            hint=f"--launcher {here[0].name} --backend {here[0].backends[0]}",
        )
    if named[0].mpi and not job.runtime.mpirun:
        raise _no_mpi(job)
    return next(each for each in named if not each.mpi or job.runtime.mpi in each.mpi)


def _no_mpi(job: Job) -> NotPossible:
    fixed = job.mark != MARK or job.configuration.backend == Backend.NCCL  # `vsml job` has no --backend
    return NotPossible(
        f"the job wants MPI, and {job.nodes[0].name} has no mpirun",
        code="bench.no-mpi",
        target=job.nodes[0].name,
        hint=_NAME_MPI if fixed else f"{_NAME_MPI}; or --backend gloo",
    )


def find_tag(launcher: str) -> str:
    """Return what this launcher puts before ranks' lines, as a regular expression; empty when it puts nothing there."""
    return next((each.tag for each in LAUNCHERS if each.name == launcher and each.tag), "")


def find_launcher(name: str) -> Launcher:
    """Return the first row of this name; others of it differ in what ranks talk over, and in whose MPI it is."""
    return next(each for each in LAUNCHERS if each.name == name)


def find_gpu_backend(launcher: str, gpus: Sequence[int], ranks_per_node: int) -> Backend | None:
    """Return what ranks talk over where each of them has a GPU; `gpus` are those of each node.

    None where one has no GPU, and for launchers of Horovod, which takes NCCL for GPUs' memory by itself, whatever its
    controllers talk over.
    """
    return find_launcher(launcher).on_gpus if min(gpus, default=0) >= ranks_per_node else None


def check_variables(launcher: str, names: Iterable[str]) -> None:
    """Raise ConfigError `bench.launcher-variable` for variables that launchers give to each rank themselves."""
    own = {*_RANK_NAMES, *(name for each in LAUNCHERS if each.name == launcher for name in each.sets)}
    refused = [name for name in names if name in own]
    if refused:
        raise ConfigError(
            f"--env cannot set {', '.join(refused)}: the launcher does, for each rank",
            code="bench.launcher-variable",
            target=launcher,
            hint="--ranks-per-node N says how many ranks run, --interface NAME where they meet",
        )


def choose_backend(launcher: str, backend: Backend | None, *, elastic: bool = False) -> Backend:
    """Return what ranks talk over that this launcher starts, its first choice where none is named.

    ConfigError `usage` when it starts none of this kind, or none that go on when a node is lost.
    """
    rows = [each for each in LAUNCHERS if each.name == launcher]
    chosen = backend or Backend(rows[0].backends[0])
    row = next((each for each in rows if chosen in each.backends), None)
    if row is None:
        other = next(each.name for each in LAUNCHERS if chosen in each.backends)
        raise ConfigError(f"{launcher} starts no ranks over {chosen}", code="usage", hint=f"--launcher {other}")
    if elastic and not row.elastic:
        able = next(each for each in LAUNCHERS if each.elastic)
        raise ConfigError(
            f"{launcher} over {chosen} is not elastic",
            code="usage",
            hint=f"--launcher {able.name} --backend {able.backends[0]}",
        )
    return chosen
