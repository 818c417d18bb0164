"""Whether an engine averages gradients, and does not add them up: two ranks with the same samples train as one does.

Equal weights at the end do not tell: sums are equal too. With the same samples on each rank the average is each one's
own gradient, so that two ranks have the losses of one rank alone at the same rate.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest

from tests.e2e import trained

if TYPE_CHECKING:
    from tests.e2e.trained import Cluster

RATE = 0.05  # of all ranks together; engines multiply theirs by the number of ranks
ALIKE = f"""\
import importlib, os, sys, time
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).parents[1]))  # where `vsml bench` has its own programs
train = importlib.import_module("train")
given = train.arguments()
engine = importlib.import_module(given.engine)
torch = importlib.import_module("pytorch_ddp") if given.engine.startswith("pytorch") else None
ranks = int(os.environ.get("HOROVOD_SIZE") or os.environ["WORLD_SIZE"])
(torch or engine).BASE_RATE = {RATE} / ranks
training = engine.start(given)
assert training.ranks == ranks
if torch:
    images = torch.ShardedImages(training.torch, given, torch.pin(training.torch, 0), 0, 1)
elif given.engine == "jax_spmd":
    training.rank, training.ranks = 0, 1
    images = engine._SpmdImages(training)
else:
    one = SimpleNamespace(size=lambda: 1, rank=lambda: 0)
    images = iter(engine.dataset(training.tf, one, given))
for number in range(given.steps):
    began = time.perf_counter()
    loss = training.step(*next(images))
    train.emit("step", step=number, seconds=time.perf_counter() - began, loss=loss)
training.ranks = ranks
training.end()
"""
ASKED = ("--repeats", "1", "--max-time", "600", "--script", "alike.py", "-o", "json")


def assert_average(cluster: Cluster, module: str, launcher: str) -> None:
    """Train with this module on two nodes and on one, and hold the losses of both against each other."""
    cluster.shell.write("alike.py", ALIKE)
    one, two = (_losses(cluster, module, launcher, nodes) for nodes in (1, 2))
    assert one[0][-1] < 0.95 * one[0][0]
    assert math.isfinite(one[0][-1])
    for rank in two:
        assert rank == pytest.approx(one[0], rel=1e-3)


def _losses(cluster: Cluster, module: str, launcher: str, nodes: int) -> list[list[float]]:
    """Return the loss of each step, by rank."""
    arguments = f"--engine {module} --steps 6 --batch 8 --image 32"
    how = ("--launcher", launcher, "--nodes", str(nodes), "--results", f"alike-{module}-{nodes}")
    (run,) = trained.runs(cluster.shell.here("bench", "cluster.toml", *ASKED, f"--script-args={arguments}", *how))
    losses: list[list[float]] = run["steps"]["loss"]
    assert len(losses) == nodes
    return losses
