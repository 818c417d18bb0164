"""The training of `vsml bench regimes --regime async` by TensorFlow's own parameter server, on its own node.

Model, samples and their order are those of `regimes.py`, which lies beside it. RANK 0 is coordinator and parameter
server, every other rank a worker. Each prints what its node's adapters sent meanwhile; rank 0 the loss, too.
"""

from __future__ import annotations

import importlib
import json
import os
import socket
import subprocess
import sys
import time
from typing import Any

import numpy as np

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
THREADS = 8  # a server with fewer than workers waits for itself for ever
TOGETHER_S = 120


def main() -> None:
    if sys.argv[1:2] == ["--serve"]:
        serve(json.loads(sys.argv[2]), sys.argv[3], 0)
        time.sleep(86400)  # until its parent ends it
    rank, workers = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]) - 1
    where = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
    lead(workers, where) if rank == 0 else follow(rank, where)


def serve(cluster: dict[str, list[str]], job: str, number: int) -> Any:
    tf = importlib.import_module("tensorflow")
    config = tf.compat.v1.ConfigProto(inter_op_parallelism_threads=THREADS)
    return tf.distribute.Server(cluster, job_name=job, task_index=number, protocol="grpc", config=config)


def follow(rank: int, where: tuple[str, int]) -> None:
    """Be a worker until the coordinator has what it wants."""
    counters = importlib.import_module("allreduce")
    with connect(where) as leader, leader.makefile("rw") as lines:
        lines.write(f"{leader.getsockname()[0]}:{free_port()}\n")
        lines.flush()
        cluster = json.loads(lines.readline())
        server = serve(cluster, "worker", int(lines.readline()))
        say(lines, "serving")
        lines.readline()
        before = counters.read_counters()
        say(lines, "counted")
        lines.readline()
        sent = counters.differences(before, counters.read_counters())
    say(sys.stdout, json.dumps({"rank": rank, "sent": sent}))
    del server
    os._exit(0)  # its threads never end


def lead(workers: int, where: tuple[str, int]) -> None:
    counters = importlib.import_module("allreduce")
    with socket.create_server(("", where[1]), backlog=workers) as listener:
        listener.settimeout(TOGETHER_S)
        files = [listener.accept()[0].makefile("rw") for _ in range(workers)]
    addresses = [each.readline().strip() for each in files]
    own = [f"{where[0]}:{free_port()}" for _ in range(2)]
    cluster = {"chief": own[:1], "ps": own[1:], "worker": addresses}
    server = subprocess.Popen([sys.executable, __file__, "--serve", json.dumps(cluster), "ps"])
    try:
        for number, each in enumerate(files):
            say(each, f"{json.dumps(cluster)}\n{number}")
        for each in files:
            each.readline()
        coordinator, fit = prepare(cluster)
        for each in files:
            say(each, "begin")
            each.readline()
        before = counters.read_counters()
        found = fit(coordinator)
        sent = counters.differences(before, counters.read_counters())
        for each in files:
            say(each, "end")
        say(sys.stdout, json.dumps({"rank": 0, "sent": sent, **found}))
    finally:
        server.kill()
    os._exit(0)


def prepare(cluster: dict[str, list[str]]) -> tuple[Any, Any]:
    """Return the coordinator, and what trains and returns loss and steps."""
    tf, regimes = map(importlib.import_module, ("tensorflow", "regimes"))
    given = regimes.arguments()
    samples, model = regimes.Samples(np, given), regimes.Perceptron(np, given)
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
        tf.train.ClusterSpec(cluster), rpc_layer="grpc", task_type="chief", task_id=0
    )
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    with strategy.scope():
        first, last = tf.Variable(model.first), tf.Variable(model.last)

    @tf.function
    def step(inputs: Any, labels: Any) -> Any:
        weights = [first.read_value(), last.read_value()]
        with tf.GradientTape() as tape:
            tape.watch(weights)
            scores = tf.tanh(inputs @ weights[0]) @ weights[1]
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, scores))
        for variable, gradient in zip((first, last), tape.gradient(loss, weights), strict=True):
            variable.assign_sub(given.rate * gradient)
        return loss

    def fit(coordinator: Any) -> dict[str, Any]:
        steps = given.samples // given.batch
        for number in range(steps):
            inputs, labels = samples.take(number * given.batch, given.batch)
            coordinator.schedule(step, args=(tf.constant(inputs), tf.constant(labels)))
        coordinator.join()
        model.first[:], model.last[:] = first.numpy(), last.numpy()
        loss = model.loss(*samples.take(regimes.UNSEEN, regimes.HELD_OUT))
        return {"loss": float(loss), "steps": steps, "size_bytes": model.weights.nbytes}

    return tf.distribute.coordinator.ClusterCoordinator(strategy), fit


def connect(where: tuple[str, int]) -> socket.socket:
    ends = time.monotonic() + TOGETHER_S
    while True:
        try:
            return socket.create_connection(where, timeout=None)
        except OSError:
            if time.monotonic() > ends:
                raise
            time.sleep(0.2)


def free_port() -> int:
    with socket.create_server(("", 0)) as found:
        return int(found.getsockname()[1])


def say(lines: Any, text: str) -> None:
    lines.write(f"{text}\n")
    lines.flush()


if __name__ == "__main__":
    main()
