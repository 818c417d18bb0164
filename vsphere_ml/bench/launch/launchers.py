"""Launch lines as values: for each launcher the command, the variables and the files it needs in the first guest.

The command is started with these variables and no others, so nothing of the operator's environment can reach a remote
command line. `horovodrun` 0.28.1 switches host key checking off on its own command line of ssh. It finds our `ssh`
first, and of an option given twice OpenSSH takes the first, so keys are checked all the same. Both Open MPI families
are told everything twice, since Open MPI 5 moved its launcher's settings to PRRTE and ignores the old names. MPICH's
`mpirun` is Hydra, whose options are its own.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vsphere_ml.bench.model.job import MARK, MPICH, OPEN_MPI, PATH, RunIn
from vsphere_ml.bench.model.record import Workload
from vsphere_ml.core.errors import NotPossible
from vsphere_ml.core.nodes.container import NAME

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vsphere_ml.bench.model.job import Job

HOROVODRUN, MPIRUN = "horovodrun", "mpirun"
GLOO, MPI, NCCL = "gloo", "mpi", "nccl"
# How long horovodrun's ranks wait for each other: its own 30 s are less than a busy guest takes to read TensorFlow in.
PATIENCE_S = 180
_NAME_MPI = 'name one: [guest] settings = { mpirun = "/opt/openmpi/bin/mpirun" }'
_PRRTE = 5  # since this version of Open MPI the launcher is PRRTE

# Options may stand before and after the host, as ssh takes them; what follows is the remote command. It gets the run's
# mark, so that a daemon of MPI is found too when it is left. The launchers' own options have no blanks in them.
_SSH = """\
#!/bin/sh
options= host=
while [ $# -gt 0 ]; do
    case $1 in
    -[bcDEeFIiJLlmOopQRSWw]) options="$options $1 $2"; shift ;;
    -*) options="$options $1" ;;
    *) [ -z "$host" ] || break; host=$1 ;;
    esac
    shift
done
# shellcheck disable=SC2086 # words
{command}exec /usr/bin/ssh{port} -o StrictHostKeyChecking=yes -o BatchMode=yes -o ForwardAgent=no -o ForwardX11=no \\
    $options "$host" "$command"
"""


_COMMAND = 'command="export {mark}={run}; $*"\n'
# A container without an sshd is entered through its guest's. Its own shell reads the command again, hence the quotes.
_IN_CONTAINER = r"""{command}quoted=$(printf '%s' "$command" | sed "s/'/'\\\\''/g; 1s/^/'/; \$s/\$/'/")
command="docker exec -i {name} sh -c $quoted"
"""


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
    asked = job.configuration
    if asked.backend == GLOO:
        return _launch(job, _horovodrun(job, "--gloo"), _for_gloo(job))
    if not job.runtime.mpirun:
        raise _no_mpi(job)
    if asked.launcher == HOROVODRUN:
        return _launch(job, _horovodrun_over_mpi(job), _for_open_mpi(job))
    if job.runtime.mpi == MPICH:
        settings = _for_mpich(job)
        return _launch(job, _hydra(job, settings), settings)
    settings = _for_open_mpi(job)
    return _launch(job, _mpirun(job, settings), settings)


def _launch(job: Job, command: tuple[str, ...], more: Mapping[str, str]) -> Launch:
    return Launch(
        command=command,
        variables={**_variables(job), **more, **_requested_variables(job)},
        files={
            "bin/ssh": _SSH.format(command=_remote_command(job), port=_port(job)),
            "hostfile": hostfile(job),
            "hosts": "".join(f"{each}\n" for each in _slots(job)),
            "nodes.sh": _discovery(job),
        },
    )


def _requested_variables(job: Job) -> dict[str, str]:
    """Return the variables that were asked for; a PATH stands behind our `ssh`, which keeps host keys checked."""
    return {name: value for name, value in job.variables.items() if name != "PATH"}


def _remote_command(job: Job) -> str:
    """Return the lines of our `ssh` that make what runs on the other node, as the shell there is to read it."""
    command = _COMMAND.format(mark=MARK, run=job.run_id)
    runtime = job.runtime
    if runtime.within is RunIn.GUEST or runtime.ssh_port:
        return command
    return _IN_CONTAINER.format(command=command, name=NAME)


def _port(job: Job) -> str:
    """Return the option for the container's sshd.

    In our `ssh`, since each launcher has a name of its own for it: `-p` in horovodrun, `plm_rsh_args` in Open MPI 4,
    `plm_ssh_args` in Open MPI 5. Of a port given twice OpenSSH takes the first.
    """
    return f" -p {job.runtime.ssh_port}" if job.runtime.ssh_port else ""


def hostfile(job: Job) -> str:
    """Return the nodes in the form that both Open MPI families read. They fill each before the next."""
    return "".join(f"{node.address} slots={job.slots}\n" for node in job.nodes)


def _discovery(job: Job) -> str:
    """Return the script that tells an elastic job its nodes. Horovod leaves out those that have failed."""
    return "#!/bin/sh\n" + "".join(f"echo {each}\n" for each in _slots(job))


def _variables(job: Job) -> dict[str, str]:
    prefix, own = job.runtime.mpi_prefix, job.runtime.variables
    path = job.variables.get("PATH") or own.get("PATH", PATH)
    paths = [f"{job.folder}/bin", *([f"{prefix}/bin"] if prefix else []), path]
    libraries = [*([f"{prefix}/lib"] if prefix else []), *filter(None, [own.get("LD_LIBRARY_PATH")])]
    return {
        **own,
        "HOME": job.runtime.home,
        "USER": job.runtime.user,
        "LOGNAME": job.runtime.user,
        "LANG": "C.UTF-8",
        "PATH": ":".join(paths),
        "TF_CPP_MIN_LOG_LEVEL": "2",
        MARK: job.run_id,
        # What a program of the user's prints is shown while it runs.
        **({"PYTHONUNBUFFERED": "1"} if job.configuration.workload is Workload.SCRIPT else {}),
        **({"LD_LIBRARY_PATH": ":".join(libraries)} if libraries else {}),
    }


def _horovodrun(job: Job, *how: str) -> tuple[str, ...]:
    start = (job.runtime.python, "-m", "horovod.runner.launch", *how, "--disable-cache")
    return (*start, *_interface_option(job), "-np", str(job.ranks), *_where(job), *job.command)


def _where(job: Job) -> tuple[str, ...]:
    """Return the nodes; an elastic job asks for them again and again."""
    if not job.least_nodes:
        return ("-H", ",".join(_slots(job)))
    least, most = str(job.least_nodes * job.slots), str(job.ranks)
    return ("--min-np", least, "--max-np", most, "--host-discovery-script", f"{job.folder}/nodes.sh")


def _slots(job: Job) -> list[str]:
    return [f"{node.address}:{job.slots}" for node in job.nodes]


def _interface_option(job: Job) -> tuple[str, ...]:
    """Return the interface: with it, horovodrun neither guesses one nor starts a service on every node to find it.

    Alone on one node horovodrun 0.28.1 insists on an interface that leads to itself.
    """
    return ("--network-interface", job.interface) if len(job.nodes) > 1 else ()


def _horovodrun_over_mpi(job: Job) -> tuple[str, ...]:
    if job.runtime.mpi != OPEN_MPI:
        raise NotPossible(
            f"vsml starts ranks over {job.runtime.mpi} by its mpirun alone",
            code="bench.horovodrun-mpi",
            target=job.runtime.mpirun,
            hint="--launcher mpirun",
        )
    if job.runtime.mpi_version >= (_PRRTE,):
        raise NotPossible(
            f"horovodrun 0.28.1 cannot start Open MPI {_text(job.runtime.mpi_version)}: it writes `-bind-to none`, "
            "which Open MPI 5 takes for the program to run",
            code="bench.horovodrun-mpi",
            target=job.runtime.mpirun,
            hint="--launcher mpirun, or --backend gloo",
        )
    # It writes the rest of what Open MPI needs itself, and Open MPI takes no setting twice.
    return _horovodrun(job, "--mpi", f"--mpi-args={shlex.join(_prefix(job))}")


def _mpirun(job: Job, settings: Mapping[str, str]) -> tuple[str, ...]:
    variables = {**_variables(job), **job.variables}.keys() - settings.keys()
    exported = [word for name in sorted(variables) for word in ("-x", name)]
    # `--hostfile` and not a variable: Open MPI 5 ignores OMPI_MCA_orte_default_hostfile, and runs every rank here.
    start = (job.runtime.mpirun, "-np", str(job.ranks), "--hostfile", f"{job.folder}/hostfile")
    placed = ("--map-by", "slot", "--bind-to", "none")
    return (*start, *placed, *_open_mpi(job), *exported, *job.command)


def _open_mpi(job: Job) -> tuple[str, ...]:
    shared_memory = "vader" if job.runtime.mpi_version < (_PRRTE,) else "sm"
    over = ("--mca", "pml", "ob1", "--mca", "btl", f"tcp,self,{shared_memory}")
    link = ("--mca", "btl_tcp_if_include", job.interface)
    return (*_prefix(job), *over, *link)


def _prefix(job: Job) -> tuple[str, ...]:
    """Return how other nodes find an Open MPI that is not among the system's programs."""
    return ("--prefix", job.runtime.mpi_prefix) if job.runtime.mpi_prefix else ()


def _hydra(job: Job, settings: Mapping[str, str]) -> tuple[str, ...]:
    """Return how MPICH's Hydra starts the job. It sends the variables over its own connections, not by ssh."""
    exported = ",".join(sorted({**_variables(job), **settings, **job.variables}))
    by_ssh = ("-launcher", "ssh", "-launcher-exec", f"{job.folder}/bin/ssh", "-disable-x")
    where = ("-f", f"{job.folder}/hosts", "-iface", job.interface, "-bind-to", "none")
    return (job.runtime.mpirun, *by_ssh, *where, "-np", str(job.ranks), "-genvlist", exported, *job.command)


def _for_gloo(job: Job) -> dict[str, str]:
    """Return how long ranks wait. An elastic job keeps Horovod's own time, after which it goes on without a node."""
    waits = {"HOROVOD_START_TIMEOUT": str(PATIENCE_S)}
    return waits if job.least_nodes else waits | {"HOROVOD_GLOO_TIMEOUT_SECONDS": str(PATIENCE_S)}


def _for_mpich(job: Job) -> dict[str, str]:
    """Return what MPICH's ranks are told: TCP by UCX, over the chosen interface. Within a node it has its own way."""
    return {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": job.interface}


def _no_mpi(job: Job) -> NotPossible:
    return NotPossible(
        f"the job wants MPI, and {job.nodes[0].name} has no mpirun",
        code="bench.no-mpi",
        target=job.nodes[0].name,
        hint=_NAME_MPI if job.configuration.backend == NCCL else f"{_NAME_MPI}; or --backend gloo",
    )


def _for_open_mpi(job: Job) -> dict[str, str]:
    agent = f"{job.folder}/bin/ssh"
    # The former names and those of PRRTE.
    settings = {"plm_rsh_agent": agent, "plm_ssh_agent": agent}
    both = {f"{family}_MCA_{name}": value for family in ("OMPI", "PRTE") for name, value in settings.items()}
    interfaces = {"OMPI_MCA_oob_tcp_if_include": job.interface, "PRTE_MCA_prte_if_include": job.interface}
    root = {f"{family}_ALLOW_RUN_AS_ROOT{confirm}": "1" for family in ("OMPI", "PRTE") for confirm in ("", "_CONFIRM")}
    return both | interfaces | root


def _text(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
