"""The example of Stanford Online Products on lab guests: made-up data, staged by the playbook."""

from __future__ import annotations

import subprocess
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.e2e import trained
from tests.e2e.launched import everywhere
from vsphere_ml.lab import runtime

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.trained import Cluster

pytestmark = [*trained.on_guests(), pytest.mark.long]
EXAMPLE = Path(__file__).parents[2] / "examples" / "stanford-online-products"
NODES = 4
STAGED = "/srv/products"
FACT = f"dataset {STAGED}"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    python = runtime.python(runtime.make_runtime())
    with trained.cluster(tmp_path_factory.mktemp("products")) as made:
        folder = made.shell.folder
        for words in (["make_small.py", "--out", "data"], ["preprocess.py", "--data", "data", "--out", "shards"]):
            subprocess.run([python, EXAMPLE / words[0], *words[1:]], cwd=folder, check=True)
        with tarfile.open(folder / "shards.tar.gz", "w:gz") as archive:
            archive.add(folder / "shards", ".")
        want(made, data_archive="shards.tar.gz")
        built = made.shell.here("provision", "--yes")
        assert built.status == 0, built.err
        made.shape()
        yield made


def want(cluster: Cluster, **data: str) -> None:
    """Let the cluster file ask for four nodes with this dataset."""
    home = runtime.IN_GUESTS
    data = {"data_path": STAGED, "data_contains": "shards.json", **data}
    mpirun = f"{home}/openmpi-4/bin/mpirun"
    cluster.playbooks("base", "mpi", "data", runtime_path=f"{home}/venv", mpirun=mpirun, mesh_user="root", **data)
    file = cluster.shell.folder / "cluster.toml"
    file.write_text(file.read_text().replace("node-[1-2]", f"node-[1-{NODES}]"))


def verdicts(cluster: Cluster) -> list[str]:
    """Return what `vsml verify` says of the dataset, node by node."""
    seen = cluster.verify("-o", "json").document["data"]["facts"]
    return [each["severity"] for each in seen if each["fact"] == FACT]


def test_every_node_has_a_copy_and_a_second_run_finds_nothing_to_do(cluster: Cluster) -> None:
    assert verdicts(cluster) == ["ok"] * NODES
    assert cluster.configure().did_nothing


def test_what_lies_there_is_taken_as_it_is_and_what_does_not_is_named(cluster: Cluster) -> None:
    want(cluster)
    assert cluster.configure().did_nothing
    assert everywhere(cluster, f"mv {STAGED}/shards.json {STAGED}/away").status == 0
    ended = cluster.configure("-o", "json")
    assert everywhere(cluster, f"mv {STAGED}/away {STAGED}/shards.json").status == 0
    assert ended.status != 0
    assert "guest.dataset-missing" in ended.out
    want(cluster, data_archive="shards.tar.gz")
