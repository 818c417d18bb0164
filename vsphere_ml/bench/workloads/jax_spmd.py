"""`train.py` with JAX: one program over the devices of all processes, whose gradients are averaged by `pmean`.

On CPUs XLA carries it by Gloo, on GPUs by NCCL. Processes meet at rank 0, by the variables that torchrun would set.
Run with JAX 0.10 and 0.11; older ones may lack `jax.shard_map` or its `check_vma`.
"""

from __future__ import annotations

import functools
import hashlib
import os
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

BASE_RATE, MOMENTUM = 0.01, 0.9
PLATFORMS = {"gloo": "cpu", "nccl": "cuda"}


def start(given: argparse.Namespace) -> _SpmdTraining:
    import jax

    # By itself XLA makes a client for CPUs beside the GPUs', whose Gloo wants the guest's name to lead to an address.
    jax.config.update("jax_platforms", PLATFORMS[given.backend])
    rank, ranks, local_rank = (int(os.environ.get(name, "0")) for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"))
    if ranks > 1:
        meet = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
        jax.distributed.initialize(meet, ranks, rank, local_device_ids=[local_rank])
    return _SpmdTraining(jax, given)


class _SpmdTraining:
    """As `train.py` describes it."""

    def __init__(self, jax: Any, given: argparse.Namespace) -> None:
        self.jax, self.given = jax, given
        self.rank, self.ranks = jax.process_index(), jax.process_count()
        self.mesh = jax.sharding.Mesh(jax.devices(), ("ranks",))
        part = jax.sharding.PartitionSpec
        self.same, self.sharded = part(), part("ranks")
        self.state = self.place_alike(initial_state(jax, given))
        self._step = self.over_ranks(functools.partial(average_step, jax, given), 2)
        self._any = self.over_ranks(lambda seen: jax.lax.psum(seen, "ranks"), 0)
        self.images = _SpmdImages(self)
        leaves = jax.tree.leaves(self.state[0])
        self.parameters = sum(each.size for each in leaves)
        (own,) = jax.local_devices()
        self.device = "CPU" if own.platform == "cpu" else f"GPU:{own.local_hardware_id}"
        self.built = [given.backend]
        self.versions = {"jax": jax.__version__}

    def place_alike(self, values: Any) -> Any:
        """Return values, which every rank has made alike, as ones of all devices."""
        at = self.jax.sharding.NamedSharding(self.mesh, self.same)
        return self.jax.tree.map(lambda each: self.jax.make_array_from_process_local_data(at, each), values)

    def place_shard(self, values: Any) -> Any:
        """Return this rank's values as its part of what all have."""
        at = self.jax.sharding.NamedSharding(self.mesh, self.sharded)
        return self.jax.make_array_from_process_local_data(at, values)

    def over_ranks(self, function: Any, shards: int) -> Any:
        """Return a function that each device runs; after the first argument it has so many that are shards.

        Without shards the first one is a shard itself. Of what it returns the last is one too.
        """
        in_specs = (self.same, *[self.sharded] * shards) if shards else (self.sharded,)
        out_specs = (self.same, self.sharded) if shards else self.same
        # Values and gradients are each device's own, as the code says, and not summed unasked.
        mapped = self.jax.shard_map(function, mesh=self.mesh, in_specs=in_specs, out_specs=out_specs, check_vma=False)
        return self.jax.jit(mapped)

    def step(self, *batch: Any) -> float:
        self.state, loss = self._step(self.state, *batch)
        self.jax.block_until_ready(self.state)
        return float(loss.addressable_shards[0].data[0])

    def make_local_step(self) -> Callable[..., tuple[float, float]]:
        jax = self.jax
        own = [each.addressable_shards[0].data for each in jax.tree.leaves(self.state)]
        held = [jax.tree.unflatten(jax.tree.structure(self.state), own)]
        compute = jax.jit(functools.partial(local_step, jax, self.given))
        sent_as = gradient_type(jax, self.given)
        gradients = self.place_alike(jax.tree.map(lambda each: each.astype(sent_as), held[0][0]))
        mean = functools.partial(jax.tree.map, lambda each: jax.lax.pmean(each, "ranks"))
        specs = {"in_specs": (self.same,), "out_specs": self.same, "check_vma": False}
        exchange = jax.jit(jax.shard_map(mean, mesh=self.mesh, **specs))

        def make(images: Any, labels: Any) -> tuple[float, float]:
            shard = (images.addressable_shards[0].data, labels.addressable_shards[0].data)
            began = time.perf_counter()
            held[0], _ = jax.block_until_ready(compute(held[0], *shard))
            computed = time.perf_counter()
            self.is_stop_wanted("")  # whoever was slower is waited for here
            met = time.perf_counter()
            jax.block_until_ready(exchange(gradients))
            return computed - began, time.perf_counter() - met

        return make

    def is_stop_wanted(self, until: str) -> bool:
        import numpy as np

        seen = self.rank == 0 and os.path.exists(until)  # noqa: PTH110 - needs no import
        return bool(self._any(self.place_shard(np.full(1, seen, np.float32))).addressable_shards[0].data[0])

    def hash_weights(self) -> str:
        digest = hashlib.sha256()
        for each in self.own_weights():
            digest.update(each.tobytes())
        return digest.hexdigest()

    def has_finite_weights(self) -> bool:
        import numpy as np

        return all(bool(np.isfinite(each).all()) for each in self.own_weights())

    def own_weights(self) -> list[Any]:
        import numpy as np

        return [np.asarray(each.addressable_shards[0].data) for each in self.jax.tree.leaves(self.state[0])]

    def save(self, path: str) -> None:
        import numpy as np

        if self.rank == 0:  # one rank saves
            np.savez(path, *self.own_weights())

    def end(self) -> None:
        if self.ranks > 1:
            self.jax.distributed.shutdown()


class _SpmdImages:
    """Made-up images, made once, a shard for each rank: what is measured is not their making."""

    def __init__(self, training: _SpmdTraining) -> None:
        import numpy as np

        given = training.given
        made = np.random.default_rng(given.seed + training.rank)
        numbers = np.arange(given.batch) * training.ranks + training.rank
        labels = training.place_shard((numbers % given.classes).astype(np.int32))
        shape = (given.batch, given.image, given.image, 3)
        batches = [made.random(shape, np.float32) for _ in range(2)]
        self.batches = [(training.place_shard(each), labels) for each in batches]
        self.asked = 0

    def __next__(self) -> Any:
        self.asked += 1
        return self.batches[self.asked % len(self.batches)]


def initial_state(jax: Any, given: argparse.Namespace) -> Any:
    """Return weights by layer, and a momentum of 0 for each."""
    import numpy as np

    made = np.random.default_rng(given.seed)
    after = given.image // 4  # two convolutions of stride 2
    shapes = {"first": (3, 3, 3, 32), "second": (3, 3, 32, 64), "third": (64 * after * after, 456)}
    shapes["last"] = (456, given.classes)

    def layer(shape: tuple[int, ...]) -> dict[str, Any]:
        deviation = (2 / np.prod(shape[:-1])) ** 0.5  # He and others, 2015
        weights = (made.standard_normal(shape) * deviation).astype(np.float32)
        return {"weights": weights, "bias": np.zeros(shape[-1], np.float32)}

    weights = {name: layer(shape) for name, shape in shapes.items()}
    return weights, jax.tree.map(np.zeros_like, weights)


def loss_of(jax: Any, weights: Any, images: Any, labels: Any) -> Any:
    def convolve(values: Any, layer: Any) -> Any:
        dimensions = ("NHWC", "HWIO", "NHWC")
        made = jax.lax.conv_general_dilated(values, layer["weights"], (2, 2), "SAME", dimension_numbers=dimensions)
        return jax.nn.relu(made + layer["bias"])

    seen = convolve(convolve(images, weights["first"]), weights["second"]).reshape(images.shape[0], -1)
    seen = jax.nn.relu(seen @ weights["third"]["weights"] + weights["third"]["bias"])
    scores = jax.nn.log_softmax(seen @ weights["last"]["weights"] + weights["last"]["bias"])
    return -(scores * jax.nn.one_hot(labels, scores.shape[-1])).sum(-1).mean()


def gradient_type(jax: Any, given: argparse.Namespace) -> Any:
    return jax.numpy.float16 if given.precision == "fp16" else jax.numpy.float32


def average_step(jax: Any, given: argparse.Namespace, state: Any, images: Any, labels: Any) -> tuple[Any, Any]:
    """Return the next state and this rank's loss. One all-reduce a gradient, unless XLA joins them."""
    loss, gradients = jax.value_and_grad(functools.partial(loss_of, jax))(state[0], images, labels)
    sent_as = gradient_type(jax, given)
    averaged = jax.tree.map(lambda each: jax.lax.pmean(each.astype(sent_as), "ranks").astype(each.dtype), gradients)
    return follow(jax, state, averaged, BASE_RATE * jax.lax.psum(1, "ranks")), loss.reshape(1)


def local_step(jax: Any, given: argparse.Namespace, state: Any, images: Any, labels: Any) -> tuple[Any, Any]:  # noqa: ARG001 - as the other
    loss, gradients = jax.value_and_grad(functools.partial(loss_of, jax))(state[0], images, labels)
    return follow(jax, state, gradients, BASE_RATE), loss


def follow(jax: Any, state: Any, gradients: Any, rate: Any) -> Any:
    weights, momentum = state
    momentum = jax.tree.map(lambda before, gradient: MOMENTUM * before + gradient, momentum, gradients)
    return jax.tree.map(lambda weight, change: weight - rate * change, weights, momentum), momentum
