"""A small training with TensorFlow and Horovod, as a user would write it. Runs in guests; `overhead.py` starts it.

Rank 0 adds a line for each step to the file that VSML_BENCH_FILE names, or else to the one in its second argument, and
writes the time of day at the end of the first step to the one in its first.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

STEPS, BATCH, SIDE = 150, 32, 64


def main() -> None:
    import horovod.tensorflow as hvd  # noqa: PLC0415 - not where this is linted
    import tensorflow as tf  # noqa: PLC0415

    hvd.init()
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [layers.Input((SIDE, SIDE, 3)), layers.Conv2D(16, 3, strides=2), layers.Flatten(), layers.Dense(200)]
    )
    variables = [each.value for each in model.trainable_variables]
    hvd.broadcast_variables(variables, root_rank=0)
    images, wanted = tf.random.uniform((BATCH, SIDE, SIDE, 3)), tf.random.uniform((BATCH, 200))

    @tf.function
    def step() -> object:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(images) - wanted) ** 2)
        for each, gradient in zip(variables, tape.gradient(loss, variables), strict=True):
            each.assign_sub(0.01 * hvd.allreduce(gradient))
        return loss

    first, lines = Path(sys.argv[1]), Path(os.environ.get("VSML_BENCH_FILE", sys.argv[2]))
    for number in range(STEPS):
        began = time.perf_counter()
        float(step())
        took = time.perf_counter() - began
        if hvd.rank() == 0 and number == 0:
            first.write_text(str(time.time()))
        if hvd.rank() == 0 or "VSML_BENCH_FILE" in os.environ:
            with lines.open("a") as file:
                file.write(json.dumps({"kind": "step", "seconds": took}) + "\n")


if __name__ == "__main__":
    main()
