"""Trains one small model by a training regime: what differs from one regime to the next is the exchange alone.

The model is a perceptron of numpy's on the CPUs, so that its exchange is of host memory in every regime. Samples are
numbered, and workers take batches of them in turn: all regimes see the same samples in the same order. A sample's
gradient weighs the same in all: changes are added up, not averaged.

Runs in guests (Python 3.9 and newer) with numpy and imports nothing of vsml. Every rank adds JSON lines to the file
named by VSML_BENCH_FILE, or prints them.

    regimes.py --by servers --servers 2 --samples 960 --batch 16
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import os
import sys
import time
from typing import Any

INPUTS, CLASSES, HELD_OUT = 256, 10, 512
CLEARNESS = 0.2  # of a class, against the noise
UNSEEN = 1 << 40  # the number of the first sample that nobody trains on
NUMBERS = 4  # that Philox makes at once


def main() -> None:
    given = arguments()
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # workers share a machine's CPUs in some regimes
    import numpy as np

    # Imported when --help was answered: they need this file's folder.
    exchanges, counters, train = map(importlib.import_module, ("exchanges", "allreduce", "train"))
    exchange = exchanges.EXCHANGES[given.by](given)
    samples, model = Samples(np, given), Perceptron(np, given)
    train.emit("model", **describe(np, given, exchange, model))
    exchange.begin(model.weights)
    exchange.meet()
    before = counters.read_counters()
    steps = fit(given, exchange, samples, model, train.emit)
    exchange.meet()  # by then every worker has all that this one sent
    sent = counters.differences(before, counters.read_counters())
    exchange.end(model.weights)
    loss = model.loss(*samples.take(UNSEEN, HELD_OUT))
    train.emit(
        "regime",
        size_bytes=model.weights.nbytes,
        samples=steps * given.batch * exchange.workers,
        steps=steps,
        loss=round(float(loss), 6),
        behind=round(exchange.behind, 3),
        sent=sent,
    )
    train.emit("sync", weights=hashlib.sha256(model.weights).hexdigest(), finite=bool(np.isfinite(model.weights).all()))
    train.emit("end")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--by", choices=("nothing", "servers", "allreduce"), required=True)
    parser.add_argument("--asynchronous", action="store_true", help="the server lets no worker wait for others")
    parser.add_argument("--servers", type=int, default=1, help="each beside one of the first workers")
    parser.add_argument("--parameters", type=int, default=1_000_000, help="about so many")
    parser.add_argument("--batch", type=int, default=16, help="samples of a worker's step")
    parser.add_argument("--samples", type=int, default=960, help="of all workers, in whole steps")
    parser.add_argument("--rate", type=float, default=0.02, help="for the mean gradient of a batch")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def describe(np: Any, given: argparse.Namespace, exchange: Any, model: Perceptron) -> dict[str, Any]:
    versions = {"python": sys.version.split()[0], "numpy": np.__version__, **exchange.versions}
    return {
        "model": "perceptron",
        "parameters": model.weights.size,
        "batch": given.batch,
        "seed": given.seed,
        "device": "CPU",
        "versions": versions,
        "built": list(exchange.built),
    }


def fit(given: argparse.Namespace, exchange: Any, samples: Samples, model: Perceptron, emit: Any) -> int:
    """Train, and print each step's period and its parts; return how many steps there were."""
    steps: int = max(1, given.samples // (given.batch * exchange.workers))
    began = since = time.perf_counter()
    for number in range(steps):
        block = samples.take((number * exchange.workers + exchange.rank) * given.batch, given.batch)
        came = time.perf_counter()
        loss, change = model.change(*block)
        computed = time.perf_counter()
        exchange.exchange(model.weights, change)
        ended = time.perf_counter()
        parts = {"input_s": came - since, "compute_s": computed - came, "exchange_s": ended - computed}
        times = {name: round(each, 6) for name, each in parts.items()}
        emit("step", step=number, seconds=round(ended - since, 6), loss=round(float(loss), 6), **times)
        since = ended
    emit("wall", seconds=round(since - began, 6))
    return steps


class Samples:
    """Made-up samples, noise around a centre for each class: each has a number, by which anybody makes the same one."""

    def __init__(self, np: Any, given: argparse.Namespace) -> None:
        self.np, self.seed = np, given.seed
        self.centres = CLEARNESS * np.random.default_rng(given.seed).standard_normal((CLASSES, INPUTS), np.float32)

    def take(self, first: int, size: int) -> tuple[Any, Any]:
        """Return the inputs and labels of so many samples, from that of the first number on."""
        made = self.np.random.Philox(key=self.seed).advance(first * INPUTS // NUMBERS)
        noise = (self.np.random.Generator(made).random((size, INPUTS)) - 0.5) * 12**0.5  # of variance 1
        labels = self.np.arange(first, first + size) % CLASSES
        return noise.astype(self.np.float32) + self.centres[labels], labels


class Perceptron:
    """Two layers, their weights in one array; the same ones for the same seed."""

    def __init__(self, np: Any, given: argparse.Namespace) -> None:
        self.np, self.rate = np, given.rate
        hidden = max(1, round(given.parameters / (INPUTS + CLASSES)))
        made = np.random.default_rng(given.seed).standard_normal((INPUTS + CLASSES) * hidden, np.float32)
        self.weights = made
        self.first, self.last = self.layers(made, hidden)
        self.first /= INPUTS**0.5
        self.last /= hidden**0.5
        self.changed = np.empty_like(made)
        self.changes = self.layers(self.changed, hidden)

    def layers(self, array: Any, hidden: int) -> tuple[Any, Any]:
        """Return the layers as views of the array."""
        return array[: INPUTS * hidden].reshape(INPUTS, hidden), array[INPUTS * hidden :].reshape(hidden, CLASSES)

    def forward(self, inputs: Any, labels: Any) -> tuple[Any, Any, Any]:
        """Return the hidden layer, the classes' probabilities, and the mean loss."""
        hidden = self.np.tanh(inputs @ self.first)
        scores = hidden @ self.last
        scores -= scores.max(axis=1, keepdims=True)
        odds = self.np.exp(scores)
        odds /= odds.sum(axis=1, keepdims=True)
        seen = odds[self.np.arange(len(labels)), labels]
        return hidden, odds, -self.np.log(seen + 1e-12).mean()

    def loss(self, inputs: Any, labels: Any) -> Any:
        return self.forward(inputs, labels)[2]

    def change(self, inputs: Any, labels: Any) -> tuple[Any, Any]:
        """Return the loss of a batch, and what is to be subtracted from the weights for it."""
        hidden, odds, loss = self.forward(inputs, labels)
        odds[self.np.arange(len(labels)), labels] -= 1
        odds *= self.np.float32(self.rate / len(labels))
        first, last = self.changes
        self.np.matmul(hidden.T, odds, out=last)
        self.np.matmul(inputs.T, (odds @ self.last.T) * (1 - hidden**2), out=first)
        return loss, self.changed


if __name__ == "__main__":
    main()
