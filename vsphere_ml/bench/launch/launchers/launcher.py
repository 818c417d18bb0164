"""What a launcher is, and what all have in common: the variables of the ranks, and our `ssh`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.bench.model.engines import Needs
from vsphere_ml.bench.model.job import PATH, RunIn
from vsphere_ml.bench.model.record import Workload
from vsphere_ml.core.nodes.container import NAME
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from vsphere_ml.bench.model.job import Job
    from vsphere_ml.bench.model.launcher_names import Backend, LauncherName

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
_QUIET = {"TF_CPP_MIN_LOG_LEVEL": "2"}
# A container without an sshd is entered through its guest's. Its own shell reads the command again, hence the quotes.
_IN_CONTAINER = r"""{command}quoted=$(printf '%s' "$command" | sed "s/'/'\\\\''/g; 1s/^/'/; \$s/\$/'/")
command="docker exec -i {name} sh -c $quoted"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launcher:
    """What starts ranks in a certain way; the functions return the command in the first guest, and variables for it."""

    name: LauncherName
    backends: tuple[str, ...]  # that the ranks can talk over
    command: Callable[[Job], tuple[str, ...]]
    variables: Callable[[Job], Mapping[str, str]]
    mpi: tuple[str, ...] = ()  # one of these is needed
    elastic: bool = False
    script_needs: Needs = Needs.HOROVOD  # what a program of one's own is run with
    run_in: tuple[RunIn, ...] = (RunIn.GUEST, RunIn.CONTAINER)
    tag: str = ""  # what it puts before ranks' lines, as a regular expression
    on_gpus: Backend | None = None  # that ranks talk over where each has a GPU, unless another is asked for
    sets: tuple[str, ...] = ()  # variables that each rank has from it, whatever it was given itself


def files(job: Job) -> dict[str, str]:
    """Return the files that launchers read in the first guest, by their names in the job's folder."""
    return {
        "bin/ssh": _SSH.format(command=_remote_command(job), port=_port(job)),
        "hostfile": hostfile(job),
        "hosts": "".join(f"{each}\n" for each in slots(job)),
        "nodes.sh": _discovery(job),
    }


def _remote_command(job: Job) -> str:
    """Return the lines of our `ssh` that make what runs on the other node, as the shell there is to read it."""
    command = _COMMAND.format(mark=job.mark, run=job.run_id)
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
    """Return the script that lists an elastic job's nodes. Horovod leaves out those that have failed."""
    return "#!/bin/sh\n" + "".join(f"echo {each}\n" for each in slots(job))


def environment(job: Job) -> dict[str, str]:
    """Return the variables that ranks have whoever starts them; those of pods have their image's own besides."""
    # What a program of the user's prints is shown while it runs.
    shown = {"PYTHONUNBUFFERED": "1"} if job.configuration.workload is Workload.SCRIPT else {}
    if job.runtime.within is RunIn.KUBERNETES:
        return {**_QUIET, job.mark: job.run_id, **shown}
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
        **_QUIET,
        job.mark: job.run_id,
        **shown,
        **({"LD_LIBRARY_PATH": ":".join(libraries)} if libraries else {}),
    }


def slots(job: Job) -> list[str]:
    """Return the nodes as ADDRESS:RANKS."""
    return [f"{node.address}:{job.slots}" for node in job.nodes]
