"""`train.py` with TensorFlow 2, Keras and Horovod, along NVIDIA's seven steps from one GPU to many; each is marked.

Keras 3 with Horovod's Keras optimizer and `model.fit` averages no gradients and says nothing (Horovod 0.28.1), so the
loop is our own: gradients are taken of the `tf.Variable`s inside Keras's variables, and averaged by `hvd.allreduce`.

Mixed precision is Keras's policy: computing in 16 bits, weights and hence gradients in fp32. XLA compiles the forward
and the backward pass as one, so that the exchange begins after both; Horovod's operations stay outside of it.
"""

from __future__ import annotations

import hashlib
import os
import time
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

BASE_RATE = 0.01
COMMIT_EVERY = 10  # steps
# Small gradients of float16 would be 0. A constant factor, which NVIDIA's guide allows besides a dynamic one, is the
# same in Keras 2 and 3: https://docs.nvidia.com/deeplearning/performance/mixed-precision-training/index.html
LOSS_SCALES = {"mixed_float16": 128.0}


def start(given: argparse.Namespace) -> _HorovodTraining:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    import horovod.tensorflow as hvd
    import tensorflow as tf

    hvd.init()  # 1: start Horovod
    return _HorovodTraining(tf, hvd, given)


class _HorovodTraining:
    """As `train.py` describes it."""

    def __init__(self, tf: Any, hvd: Any, given: argparse.Namespace) -> None:
        self.tf, self.hvd, self.given = tf, hvd, given
        self.device = pin(tf, hvd)  # 2: a GPU for each process
        tf.keras.utils.set_random_seed(given.seed)  # Keras 3 makes weights by a seed of its own
        tf.keras.mixed_precision.set_global_policy("float32" if given.math == "fp32" else given.math)
        self.model = build(tf, given)
        self.optimizer = tf.keras.optimizers.SGD(BASE_RATE * hvd.size(), momentum=0.9)  # 3: scale the learning rate
        self.images = iter(dataset(tf, hvd, given))  # 4: a shard of the data for each rank
        self._step = stepper(tf, hvd, self.model, self.optimizer, given)  # 5: average the gradients
        start_alike(hvd, self.model, self.optimizer)  # 6: the same weights everywhere
        self.ranks = hvd.size()
        self.parameters = sum(int(tf.size(each)) for each in inner_variables(self.model.trainable_variables))
        self.math = computing_type(self.model)
        self.built = [name for name in ("gloo", "mpi", "nccl") if getattr(hvd, f"{name}_built")()]
        self.versions = {"tensorflow": tf.__version__, "keras": tf.keras.__version__, "horovod": version("horovod")}

    def step(self, *batch: Any) -> float:
        return float(self._step(*batch))  # the value is there only when the step is done

    def make_local_step(self) -> Any:
        return local_stepper(self.tf, self.hvd, self.given)

    def is_stop_wanted(self, until: str) -> bool:
        seen = os.path.exists(until)  # noqa: PTH110 - needs no import
        return bool(self.hvd.broadcast_object(seen, root_rank=0, name="until"))

    def hash_weights(self) -> str:
        digest = hashlib.sha256()
        for each in inner_variables(self.model.trainable_variables):
            digest.update(each.numpy().tobytes())
        return digest.hexdigest()

    def has_finite_weights(self) -> bool:
        variables = inner_variables(self.model.trainable_variables)
        return all(bool(self.tf.reduce_all(self.tf.math.is_finite(each))) for each in variables)

    def save(self, path: str) -> None:
        hvd = self.hvd
        if hvd.rank() == 0:  # 7: only one rank saves
            self.model.save_weights(path)

    def end(self) -> None:
        self.hvd.shutdown()

    def train_elastic(self, report: Any, emit: Callable[..., None]) -> None:
        """Go on from the last commit with the ranks that are left.

        Horovod 0.28.1's own TensorFlowState deadlocks when ranks join; an ObjectState of plain arrays does not.
        """
        from horovod.common.elastic import ObjectState
        from horovod.tensorflow import elastic

        hvd, given = self.hvd, self.given
        state = ObjectState(bcast_object=hvd.broadcast_object, get_rank=hvd.rank, step=0, weights=self.copy_weights())

        @elastic.run
        def go_on(state: Any) -> None:
            for variable, weights in zip(inner_variables(self.model.variables), state.weights):  # noqa: B905 - `strict` is not in Python 3.9
                variable.assign(weights)
            emit("elastic", step=state.step, size=hvd.size())
            report.period()
            while state.step < given.steps:
                report.record(state.step, report.make())
                state.step += 1
                if state.step % COMMIT_EVERY == 0:
                    state.weights = self.copy_weights()
                    state.commit()

        go_on(state)

    def copy_weights(self) -> list[Any]:
        return [each.numpy() for each in inner_variables(self.model.variables)]


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
        return tf.keras.applications.ResNet50(
            weights=None, input_shape=shape, classes=given.classes, classifier_activation=None
        )
    if given.model == "mobilenetv2":
        return tf.keras.applications.MobileNetV2(
            weights=None, input_shape=shape, classes=given.classes, classifier_activation=None
        )
    # Few operations and 7.5 million parameters at 64 pixels: a step is soon computed and long exchanged.
    return tf.keras.Sequential(
        [
            layers.Input(shape),
            layers.Conv2D(32, 3, strides=2, padding="same", activation="relu"),
            layers.Conv2D(64, 3, strides=2, padding="same", activation="relu"),
            layers.Flatten(),
            layers.Dense(456, activation="relu"),
            layers.Dense(given.classes),
        ]
    )


def computing_type(model: Any) -> str:
    """What its layers compute in, by Keras: float32, float16 or bfloat16."""
    return str(model.layers[-1].compute_dtype)


def dataset(tf: Any, hvd: Any, given: argparse.Namespace) -> Any:
    """Made-up images, made once: what is measured is not their making."""
    shape = (given.image, given.image, 3)

    def example(index: Any) -> Any:
        image = tf.random.stateless_uniform(shape, seed=(given.seed, index))
        return image, tf.cast(index % given.classes, tf.int32)

    full = tf.data.Dataset.range(2 * given.batch * hvd.size()).shard(hvd.size(), hvd.rank())
    return full.map(example).cache().repeat().batch(given.batch, drop_remainder=True).prefetch(2)


def stepper(tf: Any, hvd: Any, model: Any, optimizer: Any, given: argparse.Namespace, *, local: bool = False) -> Any:
    loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    compression = compression_of(hvd, given)
    optimizer.build(model.trainable_variables)
    scale = LOSS_SCALES.get(given.math, 1.0)

    def differentiate(images: Any, labels: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = loss_of(labels, tf.cast(model(images, training=True), tf.float32))
            scaled = loss * scale
        gradients = tape.gradient(scaled, inner_variables(model.trainable_variables))
        return loss, gradients if scale == 1 else [each / scale for each in gradients]

    compute = tf.function(differentiate, jit_compile=True) if given.xla == "on" else differentiate

    @tf.function
    def step(images: Any, labels: Any) -> Any:
        loss, gradients = compute(images, labels)
        # One all-reduce a gradient, as Horovod's tape does: each goes off while the others are still computed.
        averaged = gradients if local else [hvd.allreduce(each, compression=compression) for each in gradients]
        optimizer.apply_gradients(zip(averaged, model.trainable_variables))  # noqa: B905 - `strict` is not in Python 3.9
        return loss

    return step


def compression_of(hvd: Any, given: argparse.Namespace) -> Any:
    return hvd.Compression.fp16 if given.precision == "fp16" else hvd.Compression.none


def local_stepper(tf: Any, hvd: Any, given: argparse.Namespace) -> Any:
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
