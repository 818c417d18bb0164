"""`train.py` with PyTorch and Horovod, whose optimizer all-reduces each gradient while others are still computed.

Model, images and rate are those of `pytorch_ddp.py`: the two differ in their exchange alone.
"""

from __future__ import annotations

import importlib
import os
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import argparse


def start(given: argparse.Namespace) -> _TorchHorovodTraining:
    import horovod.torch as hvd
    import torch

    hvd.init()
    torch.manual_seed(given.seed)
    return _TorchHorovodTraining(torch, hvd, given)


class _TorchHorovodTraining:
    """As `train.py` describes it."""

    def __init__(self, torch: Any, hvd: Any, given: argparse.Namespace) -> None:
        self._parts = importlib.import_module("pytorch_ddp")
        self.torch, self.hvd, self.given = torch, hvd, given
        self.ranks = hvd.size()
        self._device = self._parts.pin(torch, hvd.local_rank())
        self.model = self._parts.build(torch, given).to(self._device)
        self.images = self._parts.ShardedImages(torch, given, self._device, hvd.rank(), self.ranks)
        own = self._parts.make_optimizer(torch, self.model, self.ranks)
        named = self.model.named_parameters()
        optimizer = hvd.DistributedOptimizer(own, named_parameters=named, compression=compression_of(hvd, given))
        hvd.broadcast_parameters(self.model.state_dict(), root_rank=0)  # the momentum is 0 everywhere
        self._step = self._parts.stepper(torch, self.model, optimizer)
        self.parameters = sum(each.numel() for each in self.model.parameters())
        self.device = self._parts.name_device(self._device)
        self.built = [name for name in ("gloo", "mpi", "nccl") if getattr(hvd, f"{name}_built")()]
        self.versions = {"torch": torch.__version__, "horovod": version("horovod")}

    def step(self, *batch: Any) -> float:
        return float(self._step(*batch))

    def make_local_step(self) -> Any:
        torch, hvd = self.torch, self.hvd
        alone = torch.zeros(1, device=self._device)
        gradients = [torch.zeros_like(each) for each in self.model.parameters()]
        compression = compression_of(hvd, self.given)

        def exchange() -> None:
            handles = [
                hvd.allreduce_async(compression.compress(each)[0], name=f"local.{at}")
                for at, each in enumerate(gradients)
            ]
            for each in handles:
                hvd.synchronize(each)

        def meet() -> object:
            return hvd.allreduce(alone, name="meet")

        return self._parts.local_stepper(torch, self.given, self._device, meet, exchange)

    def is_stop_wanted(self, until: str) -> bool:
        seen = os.path.exists(until)  # noqa: PTH110 - needs no import
        return bool(self.hvd.broadcast_object(seen, root_rank=0, name="until"))

    def hash_weights(self) -> str:
        return str(self._parts.hash_weights(self.model))

    def has_finite_weights(self) -> bool:
        return bool(self._parts.has_finite_weights(self.model))

    def save(self, path: str) -> None:
        if self.hvd.rank() == 0:  # one rank saves
            self.torch.save(self.model.state_dict(), path)

    def end(self) -> None:
        self.hvd.shutdown()


def compression_of(hvd: Any, given: argparse.Namespace) -> Any:
    return hvd.Compression.fp16 if given.precision == "fp16" else hvd.Compression.none
