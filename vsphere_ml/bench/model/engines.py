"""What trains: the program of ours that its ranks run, and the launchers that start it."""

from __future__ import annotations

from enum import StrEnum

from vsphere_ml.bench.model.launcher_names import LauncherName
from vsphere_ml.lazy_dataclass import dataclass


class Engine(StrEnum):
    """The framework, and what averages gradients: DistributedDataParallel or Horovod in PyTorch, XLA in JAX."""

    TENSORFLOW = "tensorflow"
    PYTORCH = "pytorch"
    PYTORCH_HOROVOD = "pytorch-horovod"
    JAX = "jax"


class Needs(StrEnum):
    """What launches need where ranks run."""

    NOTHING = "nothing"
    PYTHON = "Python"
    HOROVOD = "Python with Horovod"
    PYTORCH = "Python with PyTorch"
    PYTORCH_HOROVOD = "Python with PyTorch and Horovod"
    JAX = "Python with JAX"


@dataclass(frozen=True, slots=True, kw_only=True)
class _EngineSpec:
    """An engine; its module has what `workloads/train.py` asks of one."""

    engine: Engine
    module: str  # of `workloads`
    needs: Needs
    launchers: tuple[LauncherName, ...]  # the first is the default
    models: tuple[str, ...] = ()  # that it has; empty: all
    has_mixed_precision: bool = False
    has_xla: bool = False  # as an option
    is_elastic: bool = False  # goes on when nodes are lost
    takes_backend: bool = False  # it has an option for what gradients go over, which Horovod decides by itself


ENGINES = {
    each.engine: each
    for each in (
        _EngineSpec(
            engine=Engine.TENSORFLOW,
            module="tensorflow_horovod",
            needs=Needs.HOROVOD,
            launchers=(LauncherName.HOROVODRUN, LauncherName.MPIRUN),
            has_mixed_precision=True,
            has_xla=True,
            is_elastic=True,
        ),
        _EngineSpec(
            engine=Engine.PYTORCH,
            module="pytorch_ddp",
            needs=Needs.PYTORCH,
            launchers=(LauncherName.TORCHRUN, LauncherName.SSH),
            takes_backend=True,
        ),
        _EngineSpec(
            engine=Engine.PYTORCH_HOROVOD,
            module="pytorch_horovod",
            needs=Needs.PYTORCH_HOROVOD,
            launchers=(LauncherName.HOROVODRUN, LauncherName.MPIRUN),
        ),
        _EngineSpec(
            engine=Engine.JAX,
            module="jax_spmd",
            needs=Needs.JAX,
            launchers=(LauncherName.SSH,),
            models=("small",),
            takes_backend=True,
        ),
    )
}
