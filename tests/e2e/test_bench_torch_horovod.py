"""`vsml bench --engine pytorch-horovod` on lab guests: Debian's PyTorch, and a Horovod that was built with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.e2e import trained
from tests.e2e.alike import assert_average
from tests.e2e.launched import find_stale_processes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.trained import Cluster

# Its image is of 2 GB and has a Horovod to build, which no other test wants.
pytestmark = [*trained.on_guests(), pytest.mark.long]
SMALL = ("--repeats", "1", "--steps", "15", "--batch", "8", "--image-size", "32", "--max-time", "600")
HOW = [("horovodrun", "fp32"), ("horovodrun", "fp16"), ("mpirun", "fp32")]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("torch-horovod")
    with trained.pytorch_cluster(folder, "pytorch-horovod") as made:
        yield made


@pytest.mark.parametrize(("launcher", "gradients"), HOW)
def test_two_nodes_train_and_the_record_proves_it(cluster: Cluster, launcher: str, gradients: str) -> None:
    how = ("--engine", "pytorch-horovod", "--launcher", launcher, "--compression", gradients)
    wanted = (*how, "--results", f"{launcher}-{gradients}", "-o", "json")
    (run,) = trained.runs(cluster.shell.here("bench", "cluster.toml", *SMALL, *wanted))
    assert {each["name"]: each["verdict"] for each in run["proofs"]} == {
        "placement": "yes",
        "in_sync": "yes",
        "path": "yes",
        "clean": "yes",
    }
    assert run["configuration"]["options"]["engine"] == "pytorch-horovod"
    assert [(each["rank"], each["node"]) for each in run["placement"]] == [(0, "node-1"), (1, "node-2")]
    assert run["environment"]["versions"]["torch"].startswith("1.13")
    assert run["environment"]["versions"]["horovod"] == "0.28.1"
    assert [len(rank) for rank in run["steps"]["step_s"]] == [15, 15]
    assert [len(rank) for rank in run["steps"]["local"]["compute_s"]] == [3, 3]
    assert find_stale_processes(cluster) == []


def test_gradients_are_averaged_and_not_added_up(cluster: Cluster) -> None:
    assert_average(cluster, "pytorch_horovod", "horovodrun")
