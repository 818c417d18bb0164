"""`vsml bench --engine jax` on lab guests: XLA's collectives over Gloo, processes started by vsml's `ssh` alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.e2e import trained
from tests.e2e.alike import assert_average
from tests.e2e.launched import find_stale_processes
from vsphere_ml.lab import jax, runtime

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.trained import Cluster

# JAX is 600 MB, which no other test wants.
pytestmark = [*trained.on_guests(), pytest.mark.long]
SMALL = ("--repeats", "1", "--steps", "15", "--batch", "8", "--image-size", "32", "--max-time", "600")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    jax.make_jax()
    with trained.cluster(tmp_path_factory.mktemp("jax")) as made:
        made.playbooks("base", "mpi", runtime_path=f"{runtime.IN_GUESTS}/{jax.VENV}", mesh_user="root")
        done = made.configure()
        assert done.status == 0, done.err
        made.shape()
        yield made


@pytest.mark.parametrize("gradients", ["fp32", "fp16"])
def test_two_nodes_train_with_jax_and_the_record_proves_it(cluster: Cluster, gradients: str) -> None:
    wanted = ("--engine", "jax", "--compression", gradients, "--results", gradients, "-o", "json")
    (run,) = trained.runs(cluster.shell.here("bench", "cluster.toml", *SMALL, *wanted))
    assert {each["name"]: each["verdict"] for each in run["proofs"]} == {
        "placement": "yes",
        "in_sync": "yes",
        "path": "yes",
        "clean": "yes",
    }
    assert (run["configuration"]["launcher"], run["configuration"]["options"]["engine"]) == ("ssh", "jax")
    assert [(each["rank"], each["node"]) for each in run["placement"]] == [(0, "node-1"), (1, "node-2")]
    assert run["environment"]["versions"]["jax"] == "0.10.2"
    assert [len(rank) for rank in run["steps"]["step_s"]] == [15, 15]
    assert [len(rank) for rank in run["steps"]["local"]["compute_s"]] == [3, 3]
    assert find_stale_processes(cluster) == []


def test_gradients_are_averaged_and_not_added_up(cluster: Cluster) -> None:
    assert_average(cluster, "jax_spmd", "ssh")
