"""Trains a model on made-up images with an engine, and prints where the time of every step goes.

A step's period, from the end of the step before to its own, is the wait for input, the work, and a rest. How much of
the work is exchange the step itself does not show, least of all on a GPU, whose work is only queued by then. So every
few steps all ranks make a local step: the same without exchange, on a copy of the model, and then the exchange alone.

Runs in guests (Python 3.9 and newer) and imports nothing of vsml. An engine is a file beside this one; its `start`
returns what `EngineTraining` describes. Every rank adds JSON lines to the file named by VSML_BENCH_FILE, or prints
them.

    train.py --engine tensorflow_horovod --model small
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import time
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ENGINES = ("tensorflow_horovod", "pytorch_ddp", "pytorch_horovod", "jax_spmd")
MODELS = ("small", "mobilenetv2", "resnet50")
MATHS = ("fp32", "mixed_float16", "mixed_bfloat16")  # as Keras calls its policies
ASK_EVERY = 10  # steps
LOCAL_EVERY = 5  # steps; 0: never


class EngineTraining(Protocol):
    """One rank's part of a training by an engine."""

    ranks: int
    images: Iterator[Any]  # batches of this rank
    parameters: int
    device: str  # `CPU`, or `GPU:` and the number that the driver has for it
    built: list[str]  # what the engine could talk over: gloo, mpi, nccl
    versions: dict[str, str]

    def step(self, *batch: Any) -> float:
        """Make a step on a batch and return its loss, once all of it is done."""

    def make_local_step(self) -> Callable[..., tuple[float, float]]:
        """Return what makes a local step on a batch, and the exchange alone; it returns the seconds of each.

        The copy trains on by itself. It takes as much memory as the model and its optimizer.
        """

    def is_stop_wanted(self, until: str) -> bool:
        """Return whether rank 0 sees the file; all ask it, so that all make the same number of steps."""

    def hash_weights(self) -> str: ...

    def has_finite_weights(self) -> bool:
        """Return whether the weights are numbers still: where all are NaN, equal hashes show nothing."""

    def save(self, path: str) -> None:
        """Save the weights, on rank 0 alone."""

    def end(self) -> None: ...


def main() -> None:
    given = arguments()
    training = importlib.import_module(given.engine).start(given)
    emit(
        "model",
        model=given.model,
        parameters=training.parameters,
        batch=given.batch,
        image=given.image,
        precision=given.precision,
        math=getattr(training, "math", "float32"),
        xla=given.xla,
        seed=given.seed,
        device=training.device,
        versions={"python": sys.version.split()[0], **training.versions},
        built=training.built,
    )
    if given.elastic:
        training.train_elastic(_StepReport(training), emit)
    else:
        train(training, given)
    emit("sync", weights=training.hash_weights(), finite=training.has_finite_weights())
    if given.checkpoint:
        training.save(given.checkpoint)
    emit("end")
    training.end()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--engine", choices=ENGINES, default=ENGINES[0])
    parser.add_argument("--model", choices=MODELS, default="small")
    parser.add_argument("--batch", type=int, default=32, help="images a rank and step")
    parser.add_argument("--image", type=int, default=64, help="pixels of a side")
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--precision", choices=("fp32", "fp16"), default="fp32", help="of gradients on the wire")
    parser.add_argument("--math", choices=MATHS, default=MATHS[0], help="what is computed in (TensorFlow)")
    parser.add_argument("--xla", choices=("off", "on"), default="off", help="compile both passes (TensorFlow)")
    parser.add_argument("--backend", choices=("gloo", "nccl"), default="gloo", help="for gradients, without Horovod")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--local-every", type=int, default=LOCAL_EVERY, help="steps from one local step to the next")
    parser.add_argument("--until", default="", help="end soon after this file is there, on rank 0's machine")
    parser.add_argument("--elastic", action="store_true", help="go on when other ranks are lost (TensorFlow)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--checkpoint", default="", help="where rank 0 saves the weights; TensorFlow: .weights.h5")
    return parser.parse_args()


def train(training: EngineTraining, given: argparse.Namespace) -> None:
    """Print each step's period and what it went to. What of it is warm-up is for the reader to find.

    The first step builds its graph; that of a local step is built before the clock starts.
    """
    local = training.make_local_step() if given.local_every and training.ranks > 1 else None
    if local is not None:
        local(*next(training.images))
    began, report = time.monotonic(), _StepReport(training)
    for number in range(given.steps):
        made = report.make()
        stops = given.until and number % ASK_EVERY == 0 and training.is_stop_wanted(given.until)
        report.record(number, made)
        if local is not None and (number + 1) % given.local_every == 0:
            computed, exchanged = local(*report.batch)
            emit("local", seconds=report.period(), compute_s=round(computed, 6), exchange_s=round(exchanged, 6))
        if stops:
            break
    emit("wall", seconds=round(time.monotonic() - began, 6))


class _StepReport:
    """Makes steps and prints each one's period and its parts; a period begins where the one before ended."""

    def __init__(self, training: EngineTraining) -> None:
        self.training = training
        self.batch: Any = None  # of the step that was made last
        self.since = time.perf_counter()

    def make(self) -> dict[str, float]:
        """Make a step; return its loss and the seconds of its parts."""
        asked = time.perf_counter()
        self.batch = next(self.training.images)
        came = time.perf_counter()
        loss = self.training.step(*self.batch)
        done = time.perf_counter()
        return {"loss": round(loss, 6), "input_s": round(came - asked, 6), "work_s": round(done - came, 6)}

    def record(self, number: int, made: dict[str, float]) -> None:
        """Report a step; its period ends here."""
        emit("step", step=number, seconds=self.period(), **made)

    def period(self) -> float:
        now = time.perf_counter()
        passed, self.since = now - self.since, now
        return round(passed, 6)


def emit(kind: str, **what: object) -> None:
    line = json.dumps({"kind": kind, **what}) + "\n"
    file = os.environ.get("VSML_BENCH_FILE")
    if file is None:
        sys.stdout.write(line)
        sys.stdout.flush()
        return
    with open(file, "a", encoding="utf-8") as lines:  # noqa: PTH123 - as short as this script can be
        lines.write(line)


if __name__ == "__main__":
    main()
