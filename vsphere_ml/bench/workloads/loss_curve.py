"""Runs a training script as it is, and writes the loss of each of its steps to a file.

Two scripts that do the same write the same losses: random numbers begin alike, and PyTorch's samplers deal out one
order.

Imports nothing of vsml. A module that cannot be imported is written in place of losses.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import random
import sys
from typing import Any

SEED = 0
NO_MODULE = 3  # exit status


def main() -> None:
    given = parse_arguments()
    for name in given.modules.split(","):
        require(name, given.out)
    seed(given.framework)
    hooks = {"torch": watch_torch, "tensorflow": watch_tensorflow}
    hooks[given.framework](given.out)
    run(given.text, given.script, given.arguments)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("out", help="the file of losses, one JSON object a line")
    parser.add_argument("framework", choices=("torch", "tensorflow"))
    parser.add_argument("modules", help="what must be there, with commas")
    parser.add_argument("text", help="the file that is run in the script's place")
    parser.add_argument("script", help="the name under which it runs")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="the script's own")
    return parser.parse_args()


def require(name: str, out: str) -> None:
    try:
        importlib.import_module(name)
    except Exception as error:  # noqa: BLE001 - whatever a package's start ends with, it is not there
        emit(out, missing=name, why=str(error).strip().partition("\n")[0])
        sys.exit(NO_MODULE)


def seed(name: str) -> None:
    random.seed(SEED)
    try:
        numpy = importlib.import_module("numpy")
    except ImportError:
        pass
    else:
        numpy.random.seed(SEED)
    framework = importlib.import_module(name)
    (framework.manual_seed if name == "torch" else framework.random.set_seed)(SEED)


def watch_torch(out: str) -> None:
    import torch

    backward = torch.Tensor.backward

    def watched(self: Any, *given: Any, **named: Any) -> Any:
        if self.numel() == 1:
            emit(out, loss=float(self.detach()))
        return backward(self, *given, **named)

    torch.Tensor.backward = watched
    deal_alike(torch.utils.data)


def deal_alike(data: Any) -> None:
    """Let both samplers that shuffle give one order: that of the distributed one, counted by how often it is asked."""
    ordinary, distributed = data.RandomSampler.__iter__, data.distributed.DistributedSampler.__iter__

    def deal(self: Any) -> Any:
        if self.generator is not None or self.replacement:
            return ordinary(self)
        return iter(order(self, len(self.data_source)))

    def deal_distributed(self: Any) -> Any:
        return iter(order(self, len(self.dataset))) if self.shuffle else distributed(self)

    data.RandomSampler.__iter__ = deal
    data.distributed.DistributedSampler.__iter__ = deal_distributed


def order(sampler: Any, length: int) -> list[int]:
    import torch

    walk = getattr(sampler, "walks", 0)
    sampler.walks = walk + 1
    generator = torch.Generator()
    generator.manual_seed(SEED + walk)
    found: list[int] = torch.randperm(length, generator=generator).tolist()
    return found


def watch_tensorflow(out: str) -> None:
    import tensorflow as tf

    gradient = tf.GradientTape.gradient

    def watched(self: Any, target: Any, *given: Any, **named: Any) -> Any:
        if tf.is_tensor(target):
            tf.numpy_function(lambda loss: emit(out, loss=float(loss)), [tf.reduce_mean(target)], [])
        return gradient(self, target, *given, **named)

    tf.GradientTape.gradient = watched


def run(text: str, script: str, arguments: list[str]) -> None:
    sys.argv = [script, *arguments]
    sys.path[0] = os.path.dirname(os.path.abspath(script))  # noqa: PTH100, PTH120 - as the interpreter does it
    with open(text, "rb") as file:  # noqa: PTH123 - as short as this script can be
        code = compile(file.read(), script, "exec")
    main_module = sys.modules["__main__"]
    vars(main_module).update(__file__=script, __doc__=None)
    exec(code, vars(main_module))  # noqa: S102 - it is what this is for


def emit(out: str, **what: object) -> None:
    with open(out, "a", encoding="utf-8") as lines:  # noqa: PTH123
        lines.write(json.dumps(what) + "\n")


if __name__ == "__main__":
    main()
