"""The example of Stanford Online Products on lab guests: made-up data, staged by the playbook."""

from __future__ import annotations

import json
import shlex
import subprocess
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
BATCH, EPOCHS = 64, 9  # as the script has them
NEAR = 0.02  # of the accuracy
FACT = f"dataset {STAGED}"
# This kernel has no NFS client. What `mount` calls for a line of /etc/fstab is nfs-common's helper; this stand-in of it
# mounts an empty file system of that name.
EXPORT, MOUNTED = "nas.example.com:/products", "/srv/mounted"
HELPER = '#!/bin/sh\nexec mount -t tmpfs -o ro -- "$1" "$2"\n'


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


def train(cluster: Cluster, nodes: int) -> list[dict[str, Any]]:
    """Return what each rank of a training printed at its end, all ranks together having 64 images a step."""
    arguments = f"--data {STAGED} --batch {BATCH // nodes}"
    asked = ("--nodes", str(nodes), "--repeats", "1", "--script", "train_hvd.py", "--script-args", arguments)
    (run,) = trained.runs(cluster.shell.here("bench", "cluster.toml", *asked, "--results", f"on-{nodes}", "-o", "json"))
    assert {each["name"]: each["verdict"] for each in run["proofs"]}["placement"] == "yes"
    log = (cluster.shell.folder / f"on-{nodes}" / f"{run['run_id']}.log").read_text()
    return [json.loads(line[line.index("{") :]) for line in log.splitlines() if '{"accuracy"' in line]


def test_accuracy_after_equal_samples_is_that_of_one_node(cluster: Cluster) -> None:
    ported = cluster.shell.here("port", "--write", "train_hvd.py", str(EXAMPLE / "train.py"))
    assert ported.status == 0, ported.err
    ranks = {nodes: train(cluster, nodes) for nodes in (1, 2, NODES)}
    assert {nodes: len(each) for nodes, each in ranks.items()} == {1: 1, 2: 2, NODES: NODES}
    assert {sum(each["samples"] for each in own) for own in ranks.values()} == {EPOCHS * 2304}
    assert all(len({each["weights"] for each in own}) == 1 for own in ranks.values())
    (single,) = (each["accuracy"] for each in ranks[1])
    for own in ranks.values():
        assert min(each["accuracy"] for each in own) >= single - NEAR
        assert all(0 < each["input_share"] < 1 for each in own)


def test_an_export_is_mounted_by_the_helper_of_the_guest_now_and_at_its_next_boot(cluster: Cluster) -> None:
    put = f"printf %s {shlex.quote(HELPER)} >/sbin/mount.nfs && chmod 755 /sbin/mount.nfs"
    assert everywhere(cluster, put).status == 0
    want(cluster, data_path=MOUNTED, data_contains="", data_nfs=EXPORT)
    done = cluster.configure()
    assert done.status == 0, done.err
    seen = everywhere(
        cluster, f"findmnt -rn -o SOURCE --mountpoint {MOUNTED}; umount {MOUNTED}; mount -a; ls -d {MOUNTED}"
    )
    assert seen.status == 0, seen.err
    assert seen.out.splitlines()[1:] == [EXPORT, MOUNTED]  # of all nodes, which say the same
    assert cluster.configure().did_nothing
    facts = cluster.verify("-o", "json").document["data"]["facts"]
    assert [each["severity"] for each in facts if each["fact"] == f"dataset {MOUNTED}"] == ["ok"] * NODES
