"""PyTorch's torchrun, which starts the ranks of its own node alone: a program of ours starts one on each node.

Its rendezvous is static: nodes are numbered as the job has them, and meet at a port of the first. A rendezvous by c10d
numbers them as they come, and the ranks' places would not be those of the plan.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.bench.launch.launchers.launcher import Launcher, environment
from vsphere_ml.bench.model.launcher_names import Backend, LauncherName

if TYPE_CHECKING:
    from vsphere_ml.bench.model.job import Job


def _torchrun(job: Job) -> tuple[str, ...]:
    exported = ",".join(sorted({**environment(job), **_variables(job), **job.variables}))
    nodes = ",".join(node.address for node in job.nodes)
    each = (job.runtime.python, f"{job.folder}/torchrun.py", "--folder", job.folder, "--nodes", nodes)
    return (*each, "--ranks-per-node", str(job.slots), "--export", exported, "--", *job.command)


def _variables(job: Job) -> dict[str, str]:
    """Return Gloo's interface; without it, Gloo takes the one that the node's own name leads to."""
    return {"GLOO_SOCKET_IFNAME": job.interface}


TORCHRUN = Launcher(
    name=LauncherName.TORCHRUN,
    backends=(Backend.GLOO, Backend.NCCL),
    on_gpus=Backend.NCCL,
    command=_torchrun,
    variables=_variables,
)
