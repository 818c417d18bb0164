"""Open MPI's mpirun, of both families.

Every setting is given twice, since Open MPI 5 moved its launcher's settings to PRRTE and ignores the old names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.bench.launch.launchers.launcher import Launcher, environment
from vsphere_ml.bench.model.job import OPEN_MPI
from vsphere_ml.bench.model.launcher_names import Backend, LauncherName

if TYPE_CHECKING:
    from vsphere_ml.bench.model.job import Job

# UCX has its own variables for transports and devices. Without `any`, both families have lists of their own, and
# end with "PML ucx cannot be selected" where nothing of UCX's is on them (seen with 4.1.8 and 5.0.11).
UCX = tuple(
    word
    for name, value in (("pml", "ucx"), ("opal_common_ucx_tls", "any"), ("opal_common_ucx_devices", "any"))
    for word in ("--mca", name, value)
)
PRRTE = 5  # since this version of Open MPI the launcher is PRRTE
# Open MPI 4, orte/mca/schizo/ompi/schizo_ompi.c, and PMIx; settings (OMPI_MCA_…) are the user's.
SETS = (
    *("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"),
    *("OMPI_COMM_WORLD_NODE_RANK", "OMPI_UNIVERSE_SIZE", "OMPI_NUM_APP_CTX", "OMPI_FIRST_RANKS"),
    *("OMPI_APP_CTX_NUM_PROCS", "OMPI_FILE_LOCATION", "PMIX_ID", "PMIX_RANK", "PMIX_NAMESPACE"),
)


def _mpirun(job: Job) -> tuple[str, ...]:
    names = {**environment(job), **job.variables}.keys() - variables(job).keys()
    exported = [word for name in sorted(names) for word in ("-x", name)]
    # `--hostfile` and not a variable: Open MPI 5 ignores OMPI_MCA_orte_default_hostfile, and runs every rank here.
    start = (job.runtime.mpirun, "-np", str(job.ranks), "--hostfile", f"{job.folder}/hostfile")
    placed = ("--map-by", "slot", "--bind-to", "none")
    return (*start, *placed, *_open_mpi(job), *exported, *job.command)


def _open_mpi(job: Job) -> tuple[str, ...]:
    if job.over_ucx:
        return (*prefix(job), *UCX)
    shared_memory = "vader" if job.runtime.mpi_version < (PRRTE,) else "sm"
    over = ("--mca", "pml", "ob1", "--mca", "btl", f"tcp,self,{shared_memory}")
    link = ("--mca", "btl_tcp_if_include", job.interface)
    return (*prefix(job), *over, *link)


def prefix(job: Job) -> tuple[str, ...]:
    """Return how other nodes find an Open MPI that is not among the system's programs."""
    return ("--prefix", job.runtime.mpi_prefix) if job.runtime.mpi_prefix else ()


def variables(job: Job) -> dict[str, str]:
    """Return its launcher's settings, by its former names and those of PRRTE."""
    agent = f"{job.folder}/bin/ssh"
    settings = {"plm_rsh_agent": agent, "plm_ssh_agent": agent}
    both = {f"{family}_MCA_{name}": value for family in ("OMPI", "PRTE") for name, value in settings.items()}
    interfaces = {"OMPI_MCA_oob_tcp_if_include": job.interface, "PRTE_MCA_prte_if_include": job.interface}
    root = {f"{family}_ALLOW_RUN_AS_ROOT{confirm}": "1" for family in ("OMPI", "PRTE") for confirm in ("", "_CONFIRM")}
    return both | interfaces | root


MPIRUN = Launcher(
    name=LauncherName.MPIRUN,
    backends=(Backend.MPI, Backend.NCCL),
    mpi=(OPEN_MPI,),
    command=_mpirun,
    variables=variables,
    sets=SETS,
)
