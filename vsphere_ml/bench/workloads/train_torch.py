"""Trains with PyTorch's DistributedDataParallel on made-up images, a loop of its own, and tells the time of each step.

The same models' sizes, the same lines and the same parts of a step as `train.py`, which has the reasons. Averages come
from DDP: its buckets of gradients are all-reduced while the others are still computed.

Runs in guests under torchrun and imports nothing of vsml. Every rank adds JSON lines to the file named by
VSML_BENCH_FILE, or prints them.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import time
from typing import Any

MODELS = ("small", "mobilenetv2", "resnet50")
BASE_RATE = 0.01
ASK_EVERY = 10  # steps
LOCAL_EVERY = 5  # steps; 0: never
BUCKETS = (1 << 20, 25 << 20)  # bytes: DDP's first bucket and the others (`bucket_cap_mb`, reducer.hpp)


def main() -> None:
    given = arguments()
    import torch
    import torch.distributed as dist

    device = pin(torch)
    dist.init_process_group(given.backend)
    torch.manual_seed(given.seed)
    model = build(torch, given).to(device)
    images = Images(torch, dist, given, device)
    step = stepper(torch, dist, model, given)
    local = None
    if given.local_every and dist.get_world_size() > 1:
        local = local_stepper(torch, dist, given, device)
    emit(
        "model",
        model=given.model,
        parameters=sum(each.numel() for each in model.parameters()),
        batch=given.batch,
        image=given.image,
        precision=given.precision,
        seed=given.seed,
        device="CPU" if device.type == "cpu" else f"GPU:{device.index}",
        versions={"python": sys.version.split()[0], "torch": torch.__version__},
        built=[name for name in ("gloo", "mpi", "nccl") if getattr(dist, f"is_{name}_available", bool)()],
    )
    train(dist, images, step, local, given)
    emit("sync", weights=fingerprint(model), finite=all(bool(each.isfinite().all()) for each in model.parameters()))
    if given.checkpoint and dist.get_rank() == 0:  # one rank saves
        torch.save(model.state_dict(), given.checkpoint)
    emit("end")
    dist.destroy_process_group()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--model", choices=MODELS, default="small")
    parser.add_argument("--batch", type=int, default=32, help="images a rank and step")
    parser.add_argument("--image", type=int, default=64, help="pixels of a side")
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--precision", choices=("fp32", "fp16"), default="fp32", help="of gradients on the wire")
    parser.add_argument("--backend", choices=("gloo", "nccl"), default="gloo", help="that gradients go over")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--local-every", type=int, default=LOCAL_EVERY, help="steps from one local step to the next")
    parser.add_argument("--until", default="", help="end soon after this file is there, on rank 0's machine")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--checkpoint", default="", help="where rank 0 saves the weights")
    return parser.parse_args()


def pin(torch: Any) -> Any:
    if not torch.cuda.is_available():
        return torch.device("cpu")
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
    torch.cuda.set_device(device)
    return device


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


class Images:
    """Made-up images, made once, a shard for each rank: what is measured is not their making."""

    def __init__(self, torch: Any, dist: Any, given: argparse.Namespace, device: Any) -> None:
        made = torch.Generator().manual_seed(given.seed + dist.get_rank())
        shape = (given.batch, 3, given.image, given.image)
        numbers = torch.arange(given.batch) * dist.get_world_size() + dist.get_rank()
        labels = (numbers % given.classes).to(device)
        self.batches = [(torch.rand(shape, generator=made).to(device), labels) for _ in range(2)]
        self.asked = 0

    def __next__(self) -> Any:
        self.asked += 1
        return self.batches[self.asked % len(self.batches)]


def stepper(torch: Any, dist: Any, model: Any, given: argparse.Namespace, *, local: bool = False) -> Any:
    """Return what makes a step on a batch; its loss is there only when the step is done."""
    loss_of = torch.nn.CrossEntropyLoss()
    wrapped = model if local else average(torch, dist, model, given)
    rate = BASE_RATE if local else BASE_RATE * dist.get_world_size()
    optimizer = torch.optim.SGD(model.parameters(), rate, momentum=0.9)

    def step(images: Any, labels: Any) -> float:
        optimizer.zero_grad(set_to_none=False)
        loss = loss_of(wrapped(images), labels)
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


def local_stepper(torch: Any, dist: Any, given: argparse.Namespace, device: Any) -> Any:
    """Return what makes a local step on a batch, and the exchange alone; it returns the seconds of each."""
    model = build(torch, given).to(device)
    compute = stepper(torch, dist, model, given, local=True)
    kind = torch.float16 if given.precision == "fp16" else torch.float32
    width = torch.zeros(1, dtype=kind).element_size()
    sizes = bucket_sizes([each.numel() * width for each in model.parameters()])
    buckets = [torch.zeros(size // width, dtype=kind, device=device) for size in sizes]

    def exchange() -> None:
        works = [dist.all_reduce(each, async_op=True) for each in buckets]
        for each in works:
            each.wait()
        finish()

    def finish() -> None:
        if device.type == "cuda":
            torch.cuda.synchronize()

    def local_step(images: Any, labels: Any) -> tuple[float, float]:
        began = time.perf_counter()
        compute(images, labels)
        computed = time.perf_counter()
        dist.all_reduce(torch.zeros(1, device=device))  # whoever was slower is waited for here
        finish()
        met = time.perf_counter()
        exchange()
        return computed - began, time.perf_counter() - met

    return local_step


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


def train(dist: Any, images: Any, step: Any, local: Any, given: argparse.Namespace) -> None:
    """Tell each step's period and what it went to. What of it is warm-up is for the reader to find."""
    if local is not None:
        local(*next(images))
    began, watch = time.monotonic(), _Stopwatch()
    for number in range(given.steps):
        batch, loss, parts = timed_step(images, step)
        stops = given.until and number % ASK_EVERY == 0 and is_stop_wanted(dist, given.until)
        emit("step", step=number, loss=loss, seconds=watch.period(), **parts)
        if local is not None and (number + 1) % given.local_every == 0:
            computed, exchanged = local(*batch)
            emit("local", seconds=watch.period(), compute_s=round(computed, 6), exchange_s=round(exchanged, 6))
        if stops:
            break
    emit("wall", seconds=round(time.monotonic() - began, 6))


class _Stopwatch:
    """Tells how long it is since it was asked before. It never goes back."""

    def __init__(self) -> None:
        self.since = time.perf_counter()

    def period(self) -> float:
        now = time.perf_counter()
        passed, self.since = now - self.since, now
        return round(passed, 6)


def timed_step(images: Any, step: Any) -> tuple[Any, float, dict[str, float]]:
    """Make a step; return its batch, its loss, and the seconds of its parts."""
    asked = time.perf_counter()
    batch = next(images)
    came = time.perf_counter()
    loss = step(*batch)
    done = time.perf_counter()
    return batch, round(loss, 6), {"input_s": round(came - asked, 6), "work_s": round(done - came, 6)}


def is_stop_wanted(dist: Any, until: str) -> bool:
    """Return whether rank 0 sees the file; all ask it, so that all make the same number of steps."""
    said = [os.path.exists(until)]  # noqa: PTH110 - needs no import
    dist.broadcast_object_list(said, src=0)
    return bool(said[0])


def fingerprint(model: Any) -> str:
    digest = hashlib.sha256()
    for each in model.parameters():
        digest.update(each.detach().cpu().numpy().tobytes())
    return digest.hexdigest()


def emit(kind: str, **what: object) -> None:
    line = json.dumps({"kind": kind, **what}) + "\n"
    file = os.environ.get("VSML_BENCH_FILE")
    if file is None:
        sys.stdout.write(line)
        sys.stdout.flush()
        return
    with open(file, "a", encoding="utf-8") as lines:  # noqa: PTH123 - as short as this script can be
        lines.write(line)


if __name__ == "__main__":
    main()
