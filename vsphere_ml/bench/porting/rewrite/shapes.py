"""The forms of training that are ported, and how a script's own is seen."""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING

from vsphere_ml.bench.porting import places
from vsphere_ml.core.errors import BenchError

if TYPE_CHECKING:
    from vsphere_ml.bench.porting.script import Script

_DISTRIBUTED = (
    *(".DataParallel", ".DistributedDataParallel", "DistributedDataParallel", ".init_process_group"),
    *(".MirroredStrategy", ".MultiWorkerMirroredStrategy", ".ParameterServerStrategy", ".TPUStrategy"),
    *("deepspeed.initialize", ".Accelerator", "Accelerator", ".Trainer"),
)


class TrainingShape(Enum):
    """How a script trains."""

    TF_LOOP = auto()  # a loop of its own with GradientTape
    KERAS_FIT = auto()
    TORCH_LOOP = auto()


def training_shape(script: Script, file: str) -> TrainingShape:
    """Return how a script trains; raises BenchError when it is in no form that is ported."""
    other = next(script.calls(*_DISTRIBUTED), None)
    if other is not None:
        message = f"{file}:{other.lineno}: {script.name(other.func)} distributes the training already"
        raise BenchError(message, code="port.distributed", target=file, hint="port the script for one GPU")
    if places.is_torch(script) and any(script.calls(".backward")):
        return TrainingShape.TORCH_LOOP
    fits, loops = list(places.fits(script)), list(script.calls(".apply_gradients"))
    if bool(fits) != bool(loops) and not places.is_torch(script):
        return TrainingShape.KERAS_FIT if fits else TrainingShape.TF_LOOP
    message = f"{file} trains in no form that is ported"
    hint = "ported are a TensorFlow loop with GradientTape and apply_gradients, Keras' fit, and a PyTorch loop"
    raise BenchError(message, code="port.no-loop", target=file, hint=f"{hint}; `vsml bench check` has the seven steps")
