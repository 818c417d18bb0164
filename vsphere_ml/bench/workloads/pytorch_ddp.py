"""`train.py` with PyTorch's DistributedDataParallel: its buckets are all-reduced while others are still computed."""

from __future__ import annotations

import hashlib
import os
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

BASE_RATE = 0.01
BUCKETS = (1 << 20, 25 << 20)  # bytes: DDP's first bucket and the others (`bucket_cap_mb`, reducer.hpp)


def start(given: argparse.Namespace) -> _DdpTraining:
    import torch
    import torch.distributed as dist

    device = pin(torch, int(os.environ.get("LOCAL_RANK", "0")))
    dist.init_process_group(given.backend)
    torch.manual_seed(given.seed)
    return _DdpTraining(torch, dist, given, device)


class _DdpTraining:
    """As `train.py` describes it."""

    def __init__(self, torch: Any, dist: Any, given: argparse.Namespace, device: Any) -> None:
        self.torch, self.dist, self.given, self._device = torch, dist, given, device
        self.ranks = dist.get_world_size()
        self.model = build(torch, given).to(device)
        self.images = ShardedImages(torch, given, device, dist.get_rank(), self.ranks)
        optimizer = make_optimizer(torch, self.model, self.ranks)
        self._step = stepper(torch, average(torch, dist, self.model, given), optimizer)
        self.parameters = sum(each.numel() for each in self.model.parameters())
        self.device = name_device(device)
        self.built = [name for name in ("gloo", "mpi", "nccl") if getattr(dist, f"is_{name}_available", bool)()]
        self.versions = {"torch": torch.__version__}

    def step(self, *batch: Any) -> float:
        return float(self._step(*batch))

    def make_local_step(self) -> Any:
        torch, dist, device = self.torch, self.dist, self._device
        exchange = exchange_of(torch, dist, self.model, self.given)

        def meet() -> None:
            dist.all_reduce(torch.zeros(1, device=device))

        return local_stepper(torch, self.given, device, meet, exchange)

    def is_stop_wanted(self, until: str) -> bool:
        said = [os.path.exists(until)]  # noqa: PTH110 - needs no import
        self.dist.broadcast_object_list(said, src=0)
        return bool(said[0])

    def hash_weights(self) -> str:
        return hash_weights(self.model)

    def has_finite_weights(self) -> bool:
        return has_finite_weights(self.model)

    def save(self, path: str) -> None:
        if self.dist.get_rank() == 0:  # one rank saves
            self.torch.save(self.model.state_dict(), path)

    def end(self) -> None:
        self.dist.destroy_process_group()


def pin(torch: Any, local_rank: int) -> Any:
    if not torch.cuda.is_available():
        return torch.device("cpu")
    device = torch.device("cuda", local_rank)
    torch.cuda.set_device(device)
    return device


def name_device(device: Any) -> str:
    return "CPU" if device.type == "cpu" else f"GPU:{device.index}"


def build(torch: Any, given: argparse.Namespace) -> Any:
    nn = torch.nn
    if given.model != "small":
        from torchvision import models

        maker = {"resnet50": models.resnet50, "mobilenetv2": models.mobilenet_v2}[given.model]
        return maker(num_classes=given.classes)
    after = given.image // 4  # two convolutions of stride 2
    return nn.Sequential(
        nn.Conv2d(3, 32, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(32, 64, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(64 * after * after, 456),
        nn.ReLU(),
        nn.Linear(456, given.classes),
    )


class ShardedImages:
    """Made-up images, made once, a shard for each rank: what is measured is not their making."""

    def __init__(self, torch: Any, given: argparse.Namespace, device: Any, rank: int, ranks: int) -> None:
        made = torch.Generator().manual_seed(given.seed + rank)
        shape = (given.batch, 3, given.image, given.image)
        labels = ((torch.arange(given.batch) * ranks + rank) % given.classes).to(device)
        self.batches = [(torch.rand(shape, generator=made).to(device), labels) for _ in range(2)]
        self.asked = 0

    def __next__(self) -> Any:
        self.asked += 1
        return self.batches[self.asked % len(self.batches)]


def make_optimizer(torch: Any, model: Any, ranks: int) -> Any:
    return torch.optim.SGD(model.parameters(), BASE_RATE * ranks, momentum=0.9)


def stepper(torch: Any, model: Any, optimizer: Any) -> Any:
    """Return what makes a step on a batch; its loss is there only when the step is done."""
    loss_of = torch.nn.CrossEntropyLoss()

    def step(images: Any, labels: Any) -> float:
        model.zero_grad(set_to_none=False)
        loss = loss_of(model(images), labels)
        loss.backward()
        optimizer.step()
        if images.is_cuda:
            torch.cuda.synchronize()
        return float(loss.detach())

    return step


def average(torch: Any, dist: Any, model: Any, given: argparse.Namespace) -> Any:
    """DDP begins with rank 0's weights everywhere."""
    wrapped = torch.nn.parallel.DistributedDataParallel(model)
    if given.precision == "fp16":
        from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

        wrapped.register_comm_hook(dist.group.WORLD, default_hooks.fp16_compress_hook)
    return wrapped


def exchange_of(torch: Any, dist: Any, model: Any, given: argparse.Namespace) -> Callable[[], None]:
    """Return what moves as many bytes as a step's gradients, in buckets of DDP's sizes."""
    kind = torch.float16 if given.precision == "fp16" else torch.float32
    width = torch.zeros(1, dtype=kind).element_size()
    parameters = list(model.parameters())
    sizes = bucket_sizes([each.numel() * width for each in parameters])
    buckets = [torch.zeros(size // width, dtype=kind, device=parameters[0].device) for size in sizes]

    def exchange() -> None:
        works = [dist.all_reduce(each, async_op=True) for each in buckets]
        for each in works:
            each.wait()

    return exchange


def local_stepper(
    torch: Any, given: argparse.Namespace, device: Any, meet: Callable[[], object], exchange: Callable[[], None]
) -> Any:
    """Return what makes a step without exchange on a copy, then waits for the slowest rank, then exchanges alone."""
    model = build(torch, given).to(device)
    compute = stepper(torch, model, make_optimizer(torch, model, 1))

    def finish() -> None:
        if device.type == "cuda":
            torch.cuda.synchronize()

    def local_step(images: Any, labels: Any) -> tuple[float, float]:
        began = time.perf_counter()
        compute(images, labels)
        computed = time.perf_counter()
        meet()
        finish()
        met = time.perf_counter()
        exchange()
        finish()
        return computed - began, time.perf_counter() - met

    return local_step


def hash_weights(model: Any) -> str:
    digest = hashlib.sha256()
    for each in model.parameters():
        digest.update(each.detach().cpu().numpy().tobytes())
    return digest.hexdigest()


def has_finite_weights(model: Any) -> bool:
    return all(bool(each.isfinite().all()) for each in model.parameters())


def bucket_sizes(gradients: list[int]) -> list[int]:
    """Return the bytes of DDP's buckets: gradients in the order in which they come, the last layer's first."""
    sizes: list[int] = []
    size = 0
    for each in reversed(gradients):
        size += each
        if size >= BUCKETS[min(len(sizes), 1)]:
            sizes.append(size)
            size = 0
    return sizes + [size] * bool(size)
