"""PyTorch's torchrun, which starts the ranks of its own node alone: a program of ours starts one on each node.

Its rendezvous is static: nodes are numbered as the job has them, and meet at a port of the first. A rendezvous by c10d
numbers them as they come, and the ranks' places would not be those of the plan.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.bench.launch.launchers.launcher import Launcher
from vsphere_ml.bench.launch.launchers.ssh import gloo_interface, start_by_ssh
from vsphere_ml.bench.model.engines import Needs
from vsphere_ml.bench.model.launcher_names import Backend, LauncherName

if TYPE_CHECKING:
    from vsphere_ml.bench.model.job import Job


def _torchrun(job: Job) -> tuple[str, ...]:
    return start_by_ssh(job, "--torchrun")


TORCHRUN = Launcher(
    name=LauncherName.TORCHRUN,
    backends=(Backend.GLOO, Backend.NCCL),
    on_gpus=Backend.NCCL,
    script_needs=Needs.PYTORCH,
    command=_torchrun,
    variables=gloo_interface,
    tag=r"\[[^\]\s]*\d+\]:",
)
