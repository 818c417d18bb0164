"""`vsml bench` with PyTorch and JAX on a real GPU: NCCL between two nodes that are namespaces of this machine.

    make test-gpu VSML_GPU_PYTHON=/opt/torch/bin/python3

From the look at the guests to the record everything is vsml's own; vCenter is the one in memory. VSML_GPU_BACKEND=gloo
tries the same without a GPU, for whoever works on the tests themselves.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest

from tests import skips
from tests.fakes.pictures import quad_8u3
from tests.fakes.requirements import cluster
from tests.fakes.site import FakeVCenter
from tests.gpu import namespaces
from tests.unit.flows.acting import provision
from vsphere_ml.bench.launch.matrix import BenchSpec
from vsphere_ml.bench.model.engines import ENGINES, Engine
from vsphere_ml.bench.model.job import Tools
from vsphere_ml.bench.model.launcher_names import LauncherName
from vsphere_ml.bench.model.record import Outcome, Run, Workload
from vsphere_ml.bench.model.transports import Transport
from vsphere_ml.bench.probe import nccl_tests
from vsphere_ml.cli.wiring.site_wiring import SystemClock
from vsphere_ml.flows.bench.launch import LaunchSettings
from vsphere_ml.flows.bench.series import Benchmark, BenchResult, bench

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from vsphere_ml.core.model.spec import ClusterSpec

BACKEND = os.environ.get("VSML_GPU_BACKEND", "nccl")
PYTHON = os.environ.get("VSML_GPU_PYTHON") or sys.executable  # that ranks run with
MBIT = 1000
MODULES = {Engine.PYTORCH: "torch", Engine.JAX: "jax"}
ADDRESSES = {"node-1": "10.0.0.11", "node-2": "10.0.0.12"}
TRAIN = BenchSpec(
    workloads=(Workload.TRAIN,),
    nodes=(2,),
    engine=Engine.PYTORCH,
    launcher=LauncherName.TORCHRUN,
    options={Workload.TRAIN: {"image": "64", "steps": "40"}},
)
# What a person may run of their own: nothing of vsml's in it.
MINE = """\
import torch
import torch.distributed as dist
dist.init_process_group({backend!r})
device = "cuda:0" if {backend!r} == "nccl" else "cpu"
for _ in range(60):  # for some seconds: ranks' sockets are looked at while they are open
    value = torch.full((1 << 20,), float(dist.get_rank() + 1), device=device)
    dist.all_reduce(value)
    assert bool((value == 3).all())
dist.destroy_process_group()
"""


def has_package(name: str) -> bool:
    return subprocess.run([PYTHON, "-c", f"import {name}"], capture_output=True, check=False).returncode == 0


def reason_to_skip() -> str:
    if BACKEND == "nccl" and shutil.which("nvidia-smi") is None:
        return skips.GPU
    if os.geteuid() != 0:
        return "lab guests need root, for network namespaces and mounts"
    if not has_package("torch"):
        return f"{PYTHON} has no PyTorch"
    return f"{missing} is not there" if (missing := namespaces.missing_program()) else ""


PENDING = reason_to_skip()
pytestmark = pytest.mark.skipif(bool(PENDING), reason=PENDING)


def find_all_reduce_perf() -> str:
    probe = subprocess.run(["/bin/sh", "-c", nccl_tests.probe("")], capture_output=True, text=True, check=False)
    found = nccl_tests.parse_probe(probe.stdout)
    return found.path if found and found.over_mpi and shutil.which("mpirun") else ""


@dataclass(frozen=True)
class Pair:
    """Two nodes that vCenter tells of, and what a benchmark of them comes to."""

    spec: ClusterSpec
    site: FakeVCenter
    guests: namespaces.Namespaces
    folder: Path

    def bench(self, name: str, asked: BenchSpec, script: Path | None = None) -> BenchResult:
        settings = LaunchSettings(tools=Tools(python=PYTHON), limit_s=300, script=script)
        return bench(
            Benchmark(
                spec=self.spec,
                vcenter=self.site,
                guests=self.guests,
                bench_spec=asked,
                settings=settings,
                folder=self.folder / name,
                notify=lambda _event: None,
                notify_bench=lambda _event: None,
                clock=SystemClock(),
            )
        )


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    folder = tmp_path_factory.mktemp("nodes")
    spec, site = cluster(2), FakeVCenter(quad_8u3(taken=False))
    assert provision(spec, site).done
    running = tuple(replace(vm, guest_ip=ADDRESSES.get(vm.name)) for vm in site.inventory.vms)
    site.inventory = replace(site.inventory, vms=running)
    joined = namespaces.join(ADDRESSES, folder, MBIT)
    try:
        yield Pair(spec, site, joined, folder)
    finally:
        joined.close()


def only_run(done: BenchResult) -> Run:
    assert done.errors == (), [(each.code, each.message, each.details) for each in done.errors]
    (run,) = done.runs
    assert run.outcome is Outcome.COMPLETE, run.reason
    return run


def verdicts(run: Run) -> dict[str, str]:
    return {each.name: each.verdict.value for each in run.proofs}


@pytest.mark.parametrize("gradients", ["fp32", "fp16"])
@pytest.mark.parametrize("engine", [Engine.PYTORCH, Engine.JAX])
def test_two_nodes_train_and_the_record_proves_place_sync_and_path(pair: Pair, engine: Engine, gradients: str) -> None:
    if not has_package(MODULES[engine]):
        pytest.skip(f"{PYTHON} has no {MODULES[engine]}")
    # Both ranks share a GPU, of which JAX takes three quarters at its start.
    spec = replace(
        TRAIN,
        engine=engine,
        launcher=ENGINES[engine].launchers[0],
        gradients=(gradients,),
        variables={"XLA_PYTHON_CLIENT_PREALLOCATE": "false"},
    )
    run = only_run(pair.bench(f"{engine}-{gradients}", spec))
    assert verdicts(run) == {"placement": "yes", "in_sync": "yes", "path": "yes", "clean": "yes"}, run.proofs
    assert run.configuration.backend == BACKEND
    assert [(each.rank, each.node) for each in run.placement] == [(0, "node-1"), (1, "node-2")]
    assert run.steps is not None
    assert [len(rank) for rank in run.steps.step_s] == [40, 40]
    if BACKEND == "nccl":
        assert {each.carrier for each in run.paths} == {"NET/Socket"}
        assert all(each.device.startswith("GPU-") for each in run.placement)


def test_a_program_of_ones_own_is_placed_and_its_path_is_proven(pair: Pair, tmp_path: Path) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text(MINE.format(backend=BACKEND))
    run = only_run(pair.bench("mine", replace(TRAIN, workloads=(Workload.SCRIPT,)), mine))
    assert (verdicts(run)["placement"], verdicts(run)["path"]) == ("yes", "yes")
    assert {each.device for each in run.placement} == {"" if BACKEND == "nccl" else "cpu"}  # it does not say


@pytest.mark.skipif(BACKEND != "nccl", reason=skips.GPU)
def test_resnet50_computes_on_the_gpu(pair: Pair) -> None:
    options = {Workload.TRAIN: {"image": "224", "steps": "40"}}
    spec = replace(TRAIN, nodes=(1,), model="resnet50", batch=64, options=options)
    run = only_run(pair.bench("resnet50", spec))
    (place,) = run.placement
    assert place.device.startswith("GPU-")
    assert run.environment.clocks


@pytest.mark.skipif(BACKEND != "nccl", reason=skips.GPU)
def test_nccl_tests_between_two_nodes_sweep_and_prove_their_path(pair: Pair) -> None:
    if not find_all_reduce_perf():
        pytest.skip("no all_reduce_perf built with MPI=1 is installed, or no mpirun")
    sizes = {"smallest": "65536", "largest": "16777216", "iterations": "5"}
    run = only_run(pair.bench("nccl", replace(TRAIN, workloads=(Workload.NCCL,), options={Workload.NCCL: sizes})))
    assert verdicts(run) == {"placement": "yes", "in_sync": "yes", "path": "yes", "clean": "yes"}, run.proofs
    assert {each.carrier for each in run.paths if each.carrier.startswith("NET")} == {"NET/Socket"}
    assert [each.size_bytes for each in run.sweep] == [1 << power for power in range(16, 25)]


def test_one_node_trains_alone(pair: Pair) -> None:
    run = only_run(pair.bench("alone", replace(TRAIN, nodes=(1,))))
    assert verdicts(run) == {"placement": "yes", "in_sync": "yes", "clean": "yes"}, run.proofs


def test_roce_is_refused_where_there_is_no_rdma_device(pair: Pair) -> None:
    done = pair.bench("roce", replace(TRAIN, transports=(Transport.ROCE,)))
    assert [each.code for each in done.errors] == ["bench.no-rdma"]
    assert [each.outcome for each in done.runs] == [Outcome.FAILED]
