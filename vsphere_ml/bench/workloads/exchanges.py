"""What workers of `regimes.py` exchange by: nothing, parameter servers over sockets, or Horovod's all-reduce.

Runs in guests (Python 3.9 and newer) with numpy, and with TensorFlow and Horovod for the all-reduce alone.
"""

from __future__ import annotations

import importlib
import json
import os
import socket
import threading
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import argparse

MEET_S = 120  # for the others to have begun


class _NoExchange:
    """One worker, whose change is all there is."""

    rank, workers, behind = 0, 1, 0.0
    built: tuple[str, ...] = ()

    def __init__(self, _given: argparse.Namespace) -> None:
        self.versions: dict[str, str] = {}

    def begin(self, weights: Any) -> None:
        """Bring all workers to the same weights."""

    def exchange(self, weights: Any, change: Any) -> None:
        """Subtract from the weights the changes of all workers, or of those that are there."""
        weights -= change

    def meet(self) -> None:
        """Return when all workers are here."""

    def end(self, weights: Any) -> None:
        """Bring the weights of the training's end; all workers call it."""


class _ByServers(_NoExchange):
    """Parameter servers beside the first workers; RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT say who is who."""

    built = ("sockets",)

    def __init__(self, given: argparse.Namespace) -> None:
        super().__init__(given)
        self.rank, self.workers = (int(os.environ[each]) for each in ("RANK", "WORLD_SIZE"))
        self.servers, self.in_step = given.servers, not given.asynchronous
        self.meeting = _Meeting(self.rank, self.workers)
        self.stale: list[float] = []

    @property
    def behind(self) -> float:  # type: ignore[override]
        return sum(self.stale) / len(self.stale) if self.stale else 0.0

    def begin(self, weights: Any) -> None:
        # Imported when --help was answered: it needs this file's folder.
        parts = importlib.import_module("parameter_server")
        port = 0
        if self.rank < self.servers:
            own = weights[parts.split(len(weights), self.servers)[self.rank]].copy()
            self.server = parts.ParameterServer(own, self.workers, in_step=self.in_step)
            port = self.server.port
        met = self.meeting.gather([self.meeting.own, port])
        self.model = parts.ServedModel(weights, [tuple(each) for each in met[: self.servers]])
        self.model.pull(weights)

    def exchange(self, weights: Any, change: Any) -> None:
        self.stale.append(self.model.push(change))
        self.model.pull(weights)

    def meet(self) -> None:
        self.meeting.gather(None)

    def end(self, weights: Any) -> None:
        self.model.pull(weights)
        self.meet()  # a worker that went would take its server with it


class _ByAllReduce(_NoExchange):
    """Horovod's all-reduce of all gradients at once."""

    def __init__(self, given: argparse.Namespace) -> None:
        super().__init__(given)
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
        import horovod.tensorflow as hvd
        import tensorflow as tf

        hvd.init()
        tf.config.set_visible_devices([], "GPU")  # what numpy has computed is in the host's memory
        self.hvd, self.tf = hvd, tf
        self.rank, self.workers = hvd.rank(), hvd.size()
        self.built = tuple(name for name in ("gloo", "mpi", "nccl") if getattr(hvd, f"{name}_built")())
        self.versions = {"tensorflow": tf.__version__}

    def begin(self, weights: Any) -> None:
        weights[:] = self.hvd.broadcast(self.tf.constant(weights), 0, name="weights").numpy()

    def exchange(self, weights: Any, change: Any) -> None:
        weights -= self.hvd.allreduce(self.tf.constant(change), op=self.hvd.Sum, name="change").numpy()

    def meet(self) -> None:
        self.hvd.allreduce(self.tf.zeros([1]), op=self.hvd.Sum, name="meet").numpy()

    def end(self, _weights: Any) -> None:
        self.hvd.shutdown()


EXCHANGES = {"nothing": _NoExchange, "servers": _ByServers, "allreduce": _ByAllReduce}


class _Meeting:
    """Where the workers send each other a value: a connection of each to the first one, whose thread passes all on."""

    def __init__(self, rank: int, workers: int) -> None:
        address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
        if rank == 0:
            listener = socket.create_server((address, port), backlog=workers)
            threading.Thread(target=pass_on_all, args=(listener, workers), daemon=True).start()
        connection = connect(address, port)
        self.own = connection.getsockname()[0]
        self.rank, self.lines = rank, connection.makefile("rw", encoding="utf-8", newline="\n")

    def gather(self, value: object) -> list[Any]:
        """Return the values of all workers by rank."""
        self.lines.write(json.dumps([self.rank, value]) + "\n")
        self.lines.flush()
        answer = self.lines.readline()
        if not answer:
            raise ConnectionError("the first worker has gone")
        values: list[Any] = json.loads(answer)
        return values


def connect(address: str, port: int) -> socket.socket:
    """Connect as soon as somebody listens."""
    until = time.monotonic() + MEET_S
    while True:
        try:
            return socket.create_connection((address, port))
        except ConnectionRefusedError:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)


def pass_on_all(listener: socket.socket, workers: int) -> None:
    streams = [listener.accept()[0].makefile("rw", encoding="utf-8", newline="\n") for _ in range(workers)]
    while all(lines := [each.readline() for each in streams]):
        answer = json.dumps([value for _rank, value in sorted(map(json.loads, lines), key=lambda each: each[0])])
        for each in streams:
            each.write(answer + "\n")
            each.flush()
    for each in streams:  # one has gone: the others are not left waiting
        each.close()
