"""`vsml bench --engine pytorch` on lab guests: DistributedDataParallel over Gloo, started by torchrun on each node."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.e2e import trained
from tests.e2e.alike import assert_average
from tests.e2e.launched import find_stale_processes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.e2e.conftest import Ended
    from tests.e2e.trained import Cluster

# Its image is 1.4 GB, which no other test wants.
pytestmark = [*trained.on_guests(), pytest.mark.long]
SMALL = ("--repeats", "1", "--steps", "15", "--batch", "8", "--image-size", "32", "--max-time", "600")
# A program of somebody's own, that knows nothing of vsml.
MINE = """\
import os
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
value = torch.full((4,), float(dist.get_rank() + 1))
dist.all_reduce(value)
assert value.tolist() == [3.0] * 4
print("rank", dist.get_rank(), "of", os.environ["WORLD_SIZE"], "has", value[0].item(), flush=True)
dist.destroy_process_group()
"""
# A training as PyTorch's documents write one for DistributedDataParallel on CPUs; of so many steps that its
# connections, which are looked for from time to time, are seen.
DDP = """\
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
dist.init_process_group("gloo")
torch.manual_seed(dist.get_rank())
model = DistributedDataParallel(torch.nn.Linear(10, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for epoch in range(1000):
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(model(torch.randn(16, 10)), torch.randn(16, 1)).backward()
    optimizer.step()
if dist.get_rank() == 0:
    torch.save(model.module.state_dict(), "model.pt")
print("weights", sum(each.sum().item() for each in model.parameters()), flush=True)
dist.destroy_process_group()
"""
FAILS = "import os, sys, time\nif os.environ['RANK'] == '1':\n    sys.exit(7)\ntime.sleep(600)\n"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("torchrun")
    with trained.pytorch_cluster(folder, "pytorch") as made:
        yield made


def bench(cluster: Cluster, *more: str) -> Ended:
    return cluster.shell.here("bench", "cluster.toml", "--launcher", "torchrun", *SMALL, *more)


@pytest.mark.parametrize("gradients", ["fp32", "fp16"])
def test_two_nodes_train_with_pytorch_and_the_record_proves_it(cluster: Cluster, gradients: str) -> None:
    wanted = ("--compression", gradients, "--results", gradients, "-o", "json")
    (run,) = trained.runs(bench(cluster, *wanted))
    assert {each["name"]: each["verdict"] for each in run["proofs"]} == {
        "placement": "yes",
        "in_sync": "yes",
        "path": "yes",
        "clean": "yes",
    }
    assert (run["configuration"]["launcher"], run["configuration"]["options"]["engine"]) == ("torchrun", "pytorch")
    assert [(each["rank"], each["node"]) for each in run["placement"]] == [(0, "node-1"), (1, "node-2")]
    assert run["environment"]["versions"]["torch"].startswith("1.13")
    assert [len(rank) for rank in run["steps"]["step_s"]] == [15, 15]
    assert [len(rank) for rank in run["steps"]["local"]["compute_s"]] == [3, 3]
    assert find_stale_processes(cluster) == []


def test_a_program_that_knows_nothing_of_vsml_runs_on_both_nodes(cluster: Cluster) -> None:
    cluster.shell.write("mine.py", MINE)
    (run,) = trained.runs(bench(cluster, "--script", "mine.py", "--results", "mine", "-o", "json"))
    assert run["outcome"] == "complete"
    assert {each["name"]: each["verdict"] for each in run["proofs"]}["placement"] == "yes"


def test_a_job_trains_by_torchrun_on_both_nodes_and_its_model_is_fetched(cluster: Cluster, tmp_path: Path) -> None:
    shell = cluster.shell
    (shell.folder / "training").mkdir()
    shell.write("training/ddp.py", DDP)
    run = shell.here("job", "run", "--launcher", "torchrun", "--folder", "training", "--", "ddp.py")
    assert run.status == 0, run.err
    shown = dict(line.split(" weights ") for line in run.out.splitlines() if " weights " in line)
    assert set(shown) == {"[0]", "[1]"}
    assert len(set(shown.values())) == 1
    ended = shell.here("job", "logs", "-o", "json").document["data"]
    assert {each["name"]: each["verdict"] for each in ended["proofs"]} == {
        "placement": "yes",
        "in_sync": "unknown",
        "path": "yes",
    }
    fetched = shell.here("job", "fetch", "--into", str(tmp_path / "fetched"), "-o", "json").document["data"]
    assert {node: sorted(names) for node, names in fetched["files"].items()} == {
        "node-1": ["job.log", "work/model.pt"],
        "node-2": [],
    }


def test_a_rank_that_fails_ends_the_launch_with_its_status(cluster: Cluster) -> None:
    cluster.shell.write("fails.py", FAILS)
    ended = bench(cluster, "--script", "fails.py", "--results", "fails", "-o", "json")
    assert (ended.status, ended.document["errors"][0]["code"]) == (6, "bench.launch-failed")
    assert find_stale_processes(cluster) == []


def test_gradients_are_averaged_and_not_added_up(cluster: Cluster) -> None:
    assert_average(cluster, "pytorch_ddp", "torchrun")
