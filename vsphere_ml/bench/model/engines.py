"""What trains: the program of ours that its ranks run, and the launchers that start it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from vsphere_ml.bench.model.launcher_names import LauncherName


class Engine(StrEnum):
    """The framework: TensorFlow averages gradients by Horovod, PyTorch by its own DistributedDataParallel."""

    TENSORFLOW = "tensorflow"
    PYTORCH = "pytorch"


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSpec:
    """An engine; its program keeps to the rank's contract of `workloads/rank.py`."""

    engine: Engine
    program: str  # a file of `workloads`
    launchers: tuple[LauncherName, ...]  # the first is the default
    takes_backend: bool = False  # its program is told what gradients go over; Horovod knows by itself


ENGINES = {
    each.engine: each
    for each in (
        EngineSpec(
            engine=Engine.TENSORFLOW,
            program="train.py",
            launchers=(LauncherName.HOROVODRUN, LauncherName.MPIRUN),
        ),
        EngineSpec(
            engine=Engine.PYTORCH,
            program="train_torch.py",
            launchers=(LauncherName.TORCHRUN,),
            takes_backend=True,
        ),
    )
}
