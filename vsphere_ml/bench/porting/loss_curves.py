"""Does a ported script do on one rank what the script did? By the losses of all steps of both."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

from vsphere_ml.bench.porting.rewrite.shapes import TrainingShape
from vsphere_ml.core.errors import BenchError
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

TOLERANCE = 1e-5  # of a loss, or of 1 where a loss is smaller
_FEWEST = 2  # the first loss is there before anything was learnt


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveProof:
    """The losses of both, step by step, and how far they are apart."""

    steps: int
    first_loss: float
    last_loss: float
    largest_difference: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofNeeds:
    """What a run needs: the framework, all modules to import, and variables of the environment."""

    framework: str
    modules: tuple[str, ...]
    environment: dict[str, str]


def proof_needs(shape: TrainingShape, *, tf_keras: bool) -> ProofNeeds:
    """Return what both runs of a script of this form need; with `tf_keras`, Keras 2 is chosen for both."""
    # GPUs add up in no fixed order; and CUDA must not be there before the script chooses its own.
    environment = {"CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "3"}
    match shape:
        case TrainingShape.TORCH_LOOP:
            return ProofNeeds(framework="torch", modules=("torch", "horovod.torch"), environment=environment)
        case TrainingShape.TF_LOOP:
            modules: tuple[str, ...] = ("tensorflow", "horovod.tensorflow")
            return ProofNeeds(framework="tensorflow", modules=modules, environment=environment)
    modules = ("tensorflow", *(["tf_keras"] if tf_keras else []), "horovod.tensorflow.keras")
    environment |= {"TF_USE_LEGACY_KERAS": "1"} if tf_keras else {}
    return ProofNeeds(framework="tensorflow", modules=modules, environment=environment)


def read_losses(text: str, file: str) -> list[float]:
    """Return the losses that a run wrote; raises BenchError when it could not import what it needs."""
    lines = [json.loads(each) for each in text.splitlines()]
    missing = next((each for each in lines if "missing" in each), None)
    if missing is not None:
        raise BenchError(
            f"{missing['missing']} cannot be imported here: {missing['why']}",
            code="port.no-framework",
            target=file,
            hint="--python PATH names a Python that has it; without --prove nothing is run",
        )
    return [float(each["loss"]) for each in lines]


def compare_losses(script: Sequence[float], ported: Sequence[float], file: str) -> CurveProof:
    """Return how equal two curves are; raises BenchError when they are not, or are none."""
    if min(len(script), len(ported)) < _FEWEST:
        message = f"{file}: {len(script)} losses were seen of the script, {len(ported)} of the port"
        hint = "it must make two steps: give it smaller batches, or more data"
        raise BenchError(message, code="port.no-curve", target=file, hint=hint)
    apart = [(step, a, b) for step, (a, b) in enumerate(zip(script, ported, strict=False), 1) if not _are_equal(a, b)]
    if apart:
        step, a, b = apart[0]
        raise _different_error(file, f"the loss of step {step} is {a:.6g} before and {b:.6g} after the port")
    if len(script) != len(ported):
        raise _different_error(file, f"{len(script)} steps before and {len(ported)} after the port")
    differences = (abs(a - b) for a, b in zip(script, ported, strict=True))
    return CurveProof(
        steps=len(script), first_loss=script[0], last_loss=script[-1], largest_difference=max(differences)
    )


def _are_equal(a: float, b: float) -> bool:
    return math.isfinite(a) and abs(a - b) <= TOLERANCE * max(1.0, abs(a))


def _different_error(file: str, message: str) -> BenchError:
    return BenchError(
        f"{file}: {message}",
        code="port.not-equal",
        target=file,
        hint="is the script's own seed fixed, and its data in a fixed order?",
    )
