"""A parameter server and the worker's end of it: a model's part at one end of a socket, gradients at the other.

One server per process at most, in threads beside its worker. A worker pushes what it changes (`P`, the version of the
weights that it computed on, then when it is let in the change itself) and pulls the weights (`G`; the answer is their
version and they). A server that keeps workers in step answers a pull when all have asked, so after all have pushed; the
other answers at once, and lets one push and one pull in at a time, in the order in which they came: side by side they
would all be slow.

Runs in guests (Python 3.9 and newer) with numpy, and imports nothing of vsml.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

VERSION = struct.Struct("!q")
PUSH, PULL, ENTER = b"P", b"G", b"g"


class Turns:
    """Lets in one at a time, in the order in which they came."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.given = self.ended = 0

    def __enter__(self) -> None:
        with self.changed:
            mine, self.given = self.given, self.given + 1
            self.changed.wait_for(lambda: self.ended == mine)

    def __exit__(self, *_failure: object) -> None:
        with self.changed:
            self.ended += 1
            self.changed.notify_all()


class ParameterServer:
    """A part of the model, and what workers have pushed of it since it was last changed."""

    def __init__(self, weights: Any, workers: int, *, in_step: bool) -> None:
        self.weights, self.workers, self.in_step = weights, workers, in_step
        self.pushed = weights * 0
        self.version = 0  # of the weights: how many pushes are in them
        self.waiting = 0  # pushes that are not yet
        self.lock = threading.Lock()
        self.inwards, self.outwards = (contextlib.nullcontext() if in_step else Turns() for _ in range(2))
        self.together = threading.Barrier(workers, self.update)
        self.listener = socket.create_server(("", 0), backlog=workers)
        self.port = int(self.listener.getsockname()[1])
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        with self.listener:
            for _ in range(self.workers):
                connection, _address = self.listener.accept()
                threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection: socket.socket) -> None:
        """Answer one worker until it goes; when it goes at the wrong moment, the others are not left waiting."""
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        buffer = self.weights * 0
        with connection:
            try:
                while asked := connection.recv(1):
                    (self.take if asked == PUSH else self.give)(connection, buffer)
            except (OSError, threading.BrokenBarrierError):
                self.together.abort()

    def take(self, connection: socket.socket, buffer: Any) -> None:
        """Take a worker's change; answer by how many pushes its weights were behind."""
        (known,) = VERSION.unpack(receive(connection, VERSION.size))
        with self.inwards:
            connection.sendall(ENTER)
            receive_into(connection, buffer)
        with self.lock:
            stale = self.version - known
            self.pushed += buffer
            self.waiting += 1
            if not self.in_step:
                self.update()
        connection.sendall(VERSION.pack(stale))

    def update(self) -> None:
        self.weights -= self.pushed
        self.pushed[:] = 0
        self.version += self.waiting
        self.waiting = 0

    def give(self, connection: socket.socket, buffer: Any) -> None:
        if self.in_step:
            self.together.wait()
        with self.outwards:
            with self.lock:
                buffer[:] = self.weights
                version = self.version
            connection.sendall(VERSION.pack(version))
            connection.sendall(memoryview(buffer).cast("B"))


class ServedPart:
    """A worker's end: a part of its weights, which a server has."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.connection = socket.create_connection(address)
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.version = 0

    def push(self, change: Any) -> int:
        """Return how many pushes of others were in the server's weights, and not in ours."""
        self.connection.sendall(PUSH + VERSION.pack(self.version))
        receive(self.connection, len(ENTER))
        self.connection.sendall(memoryview(change).cast("B"))
        (stale,) = VERSION.unpack(receive(self.connection, VERSION.size))
        return int(stale)

    def pull(self, weights: Any) -> None:
        self.connection.sendall(PULL)
        (self.version,) = VERSION.unpack(receive(self.connection, VERSION.size))
        receive_into(self.connection, weights)


class ServedModel:
    """All parts of a worker's weights; those of several servers are pushed and pulled at the same time."""

    def __init__(self, weights: Any, addresses: Sequence[tuple[str, int]]) -> None:
        self.parts = [ServedPart(each) for each in addresses]
        self.slices = split(len(weights), len(addresses))
        self.pool = ThreadPoolExecutor(len(addresses))

    def push(self, change: Any) -> float:
        """Return once all servers have all of it: by how many pushes it was behind, on average of the servers."""
        pieces = [change[each] for each in self.slices]
        stale = list(self.pool.map(ServedPart.push, self.parts, pieces))
        return sum(stale) / len(stale)

    def pull(self, weights: Any) -> None:
        pieces = [weights[each] for each in self.slices]
        list(self.pool.map(ServedPart.pull, self.parts, pieces))


def split(length: int, parts: int) -> list[slice]:
    """Return slices of equal length, but for one element."""
    return [slice(length * number // parts, length * (number + 1) // parts) for number in range(parts)]


def receive(connection: socket.socket, size: int) -> bytes:
    found = bytearray(size)
    receive_all(connection, memoryview(found))
    return bytes(found)


def receive_into(connection: socket.socket, array: Any) -> None:
    receive_all(connection, memoryview(array).cast("B"))


def receive_all(connection: socket.socket, rest: memoryview) -> None:
    """Fill the memory; OSError when the other end has gone.

    The kernel waits for all of it: a thread that is woken for every packet waits for the interpreter's lock each time.
    """
    while rest:
        count = connection.recv_into(rest, len(rest), socket.MSG_WAITALL)
        if not count:
            raise ConnectionError("the other end has gone")
        rest = rest[count:]
