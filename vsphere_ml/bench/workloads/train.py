"""Trains a model on synthetic images with TensorFlow 2, Keras and Horovod, and tells where the time of every step goes.

A step's period, from the end of the step before to its own, is the wait for input, the work, and a rest. How much of
the work is exchange the step itself cannot tell, least of all on a GPU, whose work is only queued by then. So every
few steps all ranks make a local step: the same without exchange, on a copy of the model, and then the exchange alone.

Runs in guests and imports nothing of vsml. Every rank adds JSON lines to the file named by VSML_BENCH_FILE, or prints
them. Written along NVIDIA's seven steps from one GPU to many; each is marked below.

Keras 3 with Horovod's Keras optimizer and `model.fit` averages no gradients and says nothing (Horovod 0.28.1), so the
loop is our own: gradients are taken of the `tf.Variable`s inside Keras's variables, and averaged by `hvd.allreduce`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import time
from typing import Any

MODELS = ("small", "mobilenetv2", "resnet50")
BASE_RATE = 0.01
ASK_EVERY = 10  # steps
LOCAL_EVERY = 5  # steps; 0: never


def main() -> None:
    given = arguments()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    import horovod.tensorflow as hvd
    import tensorflow as tf

    hvd.init()  # 1: start Horovod
    device = pin(tf, hvd)  # 2: a GPU for each process
    tf.random.set_seed(given.seed)
    model = build(tf, given)
    optimizer = tf.keras.optimizers.SGD(BASE_RATE * hvd.size(), momentum=0.9)  # 3: scale the learning rate
    images = dataset(tf, hvd, given)  # 4: a shard of the data for each rank
    step = stepper(tf, hvd, model, optimizer, given)  # 5: average the gradients
    local = local_stepper(tf, hvd, given) if given.local_every and hvd.size() > 1 and not given.elastic else None
    parameters = sum(int(tf.size(each)) for each in inner_variables(model.trainable_variables))
    emit(
        "model",
        model=given.model,
        parameters=parameters,
        batch=given.batch,
        image=given.image,
        precision=given.precision,
        seed=given.seed,
        device=device,
        versions=versions(tf),
        built=[name for name in ("gloo", "mpi", "nccl") if getattr(hvd, f"{name}_built")()],
    )
    start_alike(hvd, model, optimizer)  # 6: the same weights everywhere
    if given.elastic:
        train_elastic(hvd, model, iter(images), step, given)
    else:
        train(hvd, iter(images), step, local, given)
    emit("sync", weights=fingerprint(model), finite=has_finite_weights(tf, model))
    if given.checkpoint and hvd.rank() == 0:  # 7: only one rank saves
        model.save_weights(given.checkpoint)
    emit("end")
    hvd.shutdown()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--model", choices=MODELS, default="small")
    parser.add_argument("--batch", type=int, default=32, help="images a rank and step")
    parser.add_argument("--image", type=int, default=64, help="pixels of a side")
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--precision", choices=("fp32", "fp16"), default="fp32", help="of gradients on the wire")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--local-every", type=int, default=LOCAL_EVERY, help="steps from one local step to the next")
    parser.add_argument("--until", default="", help="end soon after this file is there, on rank 0's machine")
    parser.add_argument("--elastic", action="store_true", help="go on when other ranks are lost")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--checkpoint", default="", help="where rank 0 saves the weights, a .weights.h5 file")
    return parser.parse_args()


def pin(tf: Any, hvd: Any) -> str:
    gpus = tf.config.list_physical_devices("GPU")
    for gpu in gpus:
        tf.config.experimental.set_memory_growth(gpu, True)
    if not gpus:
        return "CPU"
    tf.config.set_visible_devices(gpus[hvd.local_rank()], "GPU")
    return f"GPU:{hvd.local_rank()}"


def build(tf: Any, given: argparse.Namespace) -> Any:
    shape = (given.image, given.image, 3)
    layers = tf.keras.layers
    if given.model == "resnet50":
        return tf.keras.applications.ResNet50(weights=None, input_shape=shape, classes=given.classes)
    if given.model == "mobilenetv2":
        return tf.keras.applications.MobileNetV2(weights=None, input_shape=shape, classes=given.classes)
    # Few operations and 7.5 million parameters at 64 pixels: a step is soon computed and long exchanged.
    return tf.keras.Sequential(
        [
            layers.Input(shape),
            layers.Conv2D(32, 3, strides=2, padding="same", activation="relu"),
            layers.Conv2D(64, 3, strides=2, padding="same", activation="relu"),
            layers.Flatten(),
            layers.Dense(456, activation="relu"),
            layers.Dense(given.classes, activation="softmax"),
        ]
    )


def dataset(tf: Any, hvd: Any, given: argparse.Namespace) -> Any:
    """Made-up images, made once: what is measured is not their making."""
    shape = (given.image, given.image, 3)

    def example(index: Any) -> Any:
        image = tf.random.stateless_uniform(shape, seed=(given.seed, index))
        return image, tf.cast(index % given.classes, tf.int32)

    full = tf.data.Dataset.range(2 * given.batch * hvd.size()).shard(hvd.size(), hvd.rank())
    return full.map(example).cache().repeat().batch(given.batch, drop_remainder=True).prefetch(2)


def stepper(tf: Any, hvd: Any, model: Any, optimizer: Any, given: argparse.Namespace, *, local: bool = False) -> Any:
    loss_of = tf.keras.losses.SparseCategoricalCrossentropy()
    compression = compression_of(hvd, given)
    optimizer.build(model.trainable_variables)

    @tf.function
    def step(images: Any, labels: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = loss_of(labels, model(images, training=True))
        variables = inner_variables(model.trainable_variables)
        gradients = tape.gradient(loss, variables)
        # One all-reduce a gradient, as Horovod's tape does: each goes off while the others are still computed.
        averaged = gradients if local else [hvd.allreduce(each, compression=compression) for each in gradients]
        optimizer.apply_gradients(zip(averaged, model.trainable_variables))  # noqa: B905 - `strict` is not in Python 3.9
        return loss

    return step


def compression_of(hvd: Any, given: argparse.Namespace) -> Any:
    return hvd.Compression.fp16 if given.precision == "fp16" else hvd.Compression.none


def local_stepper(tf: Any, hvd: Any, given: argparse.Namespace) -> Any:
    """Return what makes a local step on a batch, and the exchange alone; it returns the seconds of each.

    The copy trains on by itself. It takes as much memory as the model and its optimizer.
    """
    model = build(tf, given)
    compute = stepper(tf, hvd, model, tf.keras.optimizers.SGD(BASE_RATE, momentum=0.9), given, local=True)
    compression = compression_of(hvd, given)
    gradients = [tf.zeros_like(each) for each in inner_variables(model.trainable_variables)]

    @tf.function
    def exchange() -> Any:
        # By names of our own: what a function holds from outside of it has none (TensorFlow 2.21).
        named = enumerate(gradients)
        averaged = [hvd.allreduce(each, compression=compression, name=f"local.{at}") for at, each in named]
        return tf.add_n([tf.reshape(each, [-1])[0] for each in averaged])

    @tf.function
    def meet() -> Any:
        return hvd.allreduce(tf.zeros([1]), name="meet")

    def local_step(images: Any, labels: Any) -> tuple[float, float]:
        began = time.perf_counter()
        float(compute(images, labels))
        computed = time.perf_counter()
        meet().numpy()  # whoever was slower is waited for here
        met = time.perf_counter()
        float(exchange())
        return computed - began, time.perf_counter() - met

    return local_step


def inner_variables(variables: Any) -> list[Any]:
    """The tf.Variables. Keras 3 keeps them in `value`; in Keras 2 the variables are ones, and `value` is a method."""
    return [each if callable(each.value) else each.value for each in variables]


def start_alike(hvd: Any, model: Any, optimizer: Any) -> None:
    hvd.broadcast_variables(inner_variables(model.variables), root_rank=0)
    hvd.broadcast_variables(inner_variables(optimizer.variables), root_rank=0)


def train(hvd: Any, images: Any, step: Any, local: Any, given: argparse.Namespace) -> None:
    """Tell each step's period and what it went to. What of it is warm-up is for the reader to find.

    The first step builds its graph; that of a local step is built before the clock starts.
    """
    if local is not None:
        local(*next(images))
    began, watch = time.monotonic(), _Stopwatch()
    for number in range(given.steps):
        batch, loss, parts = timed_step(images, step)
        stops = given.until and number % ASK_EVERY == 0 and is_stop_wanted(hvd, given.until)
        emit("step", step=number, loss=loss, seconds=watch.period(), **parts)
        if local is not None and (number + 1) % given.local_every == 0:
            computed, exchanged = local(*batch)
            emit("local", seconds=watch.period(), compute_s=round(computed, 6), exchange_s=round(exchanged, 6))
        if stops:
            break
    emit("wall", seconds=round(time.monotonic() - began, 6))


class _Stopwatch:
    """Tells how long it is since it was asked before. It never goes back."""

    def __init__(self) -> None:
        self.since = time.perf_counter()

    def period(self) -> float:
        now = time.perf_counter()
        passed, self.since = now - self.since, now
        return round(passed, 6)


def timed_step(images: Any, step: Any) -> tuple[Any, float, dict[str, float]]:
    """Make a step; return its batch, its loss, and the seconds of its parts."""
    asked = time.perf_counter()
    batch = next(images)
    came = time.perf_counter()
    loss = float(step(*batch))  # the value is there only when the step is done
    done = time.perf_counter()
    return batch, round(loss, 6), {"input_s": round(came - asked, 6), "work_s": round(done - came, 6)}


def train_elastic(hvd: Any, model: Any, images: Any, step: Any, given: argparse.Namespace) -> None:
    """Go on from the last commit with the ranks that are left.

    Horovod 0.28.1's own TensorFlowState deadlocks when ranks join; an ObjectState of plain arrays does not.
    """
    from horovod.common.elastic import ObjectState
    from horovod.tensorflow import elastic

    state = ObjectState(
        bcast_object=hvd.broadcast_object,
        get_rank=hvd.rank,
        step=0,
        weights=[each.numpy() for each in inner_variables(model.variables)],
    )

    @elastic.run
    def go_on(state: Any) -> None:
        for variable, weights in zip(inner_variables(model.variables), state.weights):  # noqa: B905 - `strict` is not in Python 3.9
            variable.assign(weights)
        emit("elastic", step=state.step, size=hvd.size())
        watch = _Stopwatch()
        while state.step < given.steps:
            _, loss, parts = timed_step(images, step)
            emit("step", step=state.step, loss=loss, seconds=watch.period(), **parts)
            state.step += 1
            if state.step % ASK_EVERY == 0:
                state.weights = [each.numpy() for each in inner_variables(model.variables)]
                state.commit()

    go_on(state)


def is_stop_wanted(hvd: Any, until: str) -> bool:
    """Return whether rank 0 sees the file; all ask it, so that all make the same number of steps."""
    return bool(hvd.broadcast_object(os.path.exists(until), root_rank=0, name="until"))  # noqa: PTH110 - needs no import


def fingerprint(model: Any) -> str:
    digest = hashlib.sha256()
    for each in inner_variables(model.trainable_variables):
        digest.update(each.numpy().tobytes())
    return digest.hexdigest()


def has_finite_weights(tf: Any, model: Any) -> bool:
    """Return whether the weights are numbers still: where all are NaN, equal hashes show nothing."""
    return all(bool(tf.reduce_all(tf.math.is_finite(each))) for each in inner_variables(model.trainable_variables))


def versions(tf: Any) -> dict[str, str]:
    from importlib.metadata import version

    return {
        "python": sys.version.split()[0],
        "tensorflow": tf.__version__,
        "keras": tf.keras.__version__,
        "horovod": version("horovod"),
    }


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
