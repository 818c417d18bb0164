"""Processes started by our `ssh`, one for each rank, with no launcher of a library: for programs that need none.

Each has what torchrun would give it: RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT, a free port of the
first node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.bench.launch.launchers.launcher import Launcher, environment
from vsphere_ml.bench.model.engines import Needs
from vsphere_ml.bench.model.launcher_names import SOCKETS, Backend, LauncherName

if TYPE_CHECKING:
    from vsphere_ml.bench.model.job import Job


# What `workloads/by_ssh.py` gives each rank.
_SETS = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")


def start_by_ssh(job: Job, *options: str) -> tuple[str, ...]:
    """Return the command that starts the ranks from the first node; the variables that are named go to the others."""
    exported = ",".join(sorted({**environment(job), **gloo_interface(job), **job.variables}))
    nodes = ",".join(node.address for node in job.nodes)
    each = (job.runtime.python, f"{job.folder}/by_ssh.py", "--folder", job.folder, "--nodes", nodes)
    return (*each, "--ranks-per-node", str(job.slots), "--export", exported, *options, "--", *job.command)


def gloo_interface(job: Job) -> dict[str, str]:
    """Return PyTorch's variable for Gloo; without it, Gloo takes the one that the node's own name leads to."""
    return {"GLOO_SOCKET_IFNAME": job.interface}


SSH = Launcher(
    name=LauncherName.SSH,
    backends=(Backend.GLOO, Backend.NCCL),
    on_gpus=Backend.NCCL,
    script_needs=Needs.PYTHON,
    command=start_by_ssh,
    variables=gloo_interface,
    sets=_SETS,
)
WITHOUT_LIBRARY = Launcher(
    name=LauncherName.SSH,
    backends=(SOCKETS,),
    script_needs=Needs.PYTHON,
    command=start_by_ssh,
    variables=gloo_interface,
    sets=_SETS,
)
