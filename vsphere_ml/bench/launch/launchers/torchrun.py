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

# PyTorch, torch/distributed/elastic/agent/server/local_elastic_agent.py. OMP_NUM_THREADS and the settings of NCCL's
# error handling are set there too, but only where nobody else does.
_SETS = (
    *("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE"),
    *("ROLE_RANK", "ROLE_WORLD_SIZE", "ROLE_NAME", "MASTER_ADDR", "MASTER_PORT"),
    *("TORCHELASTIC_RESTART_COUNT", "TORCHELASTIC_MAX_RESTARTS", "TORCHELASTIC_RUN_ID"),
    *("TORCHELASTIC_USE_AGENT_STORE", "TORCHELASTIC_ERROR_FILE"),
)


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
    sets=_SETS,
)
