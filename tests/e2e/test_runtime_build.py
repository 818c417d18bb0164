"""`vsml runtime build` on lab guests: Horovod is built in one and installed on both, none of which reaches an index."""

from __future__ import annotations

import hashlib
import json
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.e2e import trained
from tests.e2e.launched import everywhere, find_stale_processes
from vsphere_ml.core.tools.horovod import BUILD_PACKAGES, HOROVOD
from vsphere_ml.lab import runtime

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.e2e.conftest import Ended
    from tests.e2e.trained import Cluster

# A compiler's work of minutes, and a TensorFlow of 1.5 GB in each guest.
pytestmark = [*trained.on_guests(), pytest.mark.long]
MPIRUN = f"{runtime.IN_GUESTS}/openmpi-5/bin/mpirun"
PACKAGES = (runtime.TENSORFLOW, *runtime.EXTRAS, *BUILD_PACKAGES)
TOOLS = """\
about = "What builds."
[[step]]
kind = "packages"
names = ["cmake", "g++", "make", "python3-dev", "python3-venv"]
"""
TRAIN = ("--nodes", "2", "--repeats", "1", "--steps", "15", "--batch", "8", "--image-size", "32", "--max-time", "600")
LEFT = "ls -d /var/tmp/vsml-bench/wheelhouse-* 2>/dev/null || :"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("build")
    download(runtime.make_runtime(), folder / "packages")
    with trained.cluster(folder, trained.with_image(folder, "builder")) as made:
        (folder / "tools.toml").write_text(TOOLS)
        want(made, "base")
        yield made


def download(home: Path, into: Path) -> None:
    """Fetch what the build wants, as one would on a machine that reaches an index."""
    fetch = [str(runtime.python(home)), "-m", "pip", "download", "--quiet", "--dest", str(into)]
    subprocess.run([*fetch, "--only-binary", ":all:", *PACKAGES], check=True)
    subprocess.run([*fetch, "--no-deps", "--no-build-isolation", "--no-binary", ":all:", HOROVOD], check=True)


def want(cluster: Cluster, *playbooks: str, **settings: str) -> None:
    cluster.playbooks(*playbooks, mpirun=MPIRUN, mesh_user="root", **settings)


def build(cluster: Cluster, carriers: str, into: str = "wheelhouse", *more: str) -> Ended:
    asked = ("--framework", runtime.TENSORFLOW, "--with", carriers, "--packages", "packages", "--into", into)
    return cluster.shell.here("runtime", "build", "--node", "node-1", *asked, *more, "-o", "json")


def refusal(ended: Ended) -> str:
    assert ended.status != 0
    return str(ended.document["errors"][0]["code"])


def test_a_node_without_a_compiler_is_refused(cluster: Cluster) -> None:
    assert refusal(build(cluster, "gloo")) == "runtime.no-compiler"


# Docker is a stand-in, whose containers see their guest's files in a mount namespace of their own. It comes first:
# the next tests install TensorFlow on the guests, and their disks are too small for two.
def test_horovod_is_built_in_the_training_container_of_a_node(cluster: Cluster) -> None:
    by_container = ("gloo", "by-container", "--run-in", "container")
    assert refusal(build(cluster, *by_container)) == "runtime.no-container"
    want(cluster, "base", "./tools.toml", "container")
    done = cluster.configure("--only", "node-1")
    assert done.status == 0, done.err
    ended = build(cluster, *by_container)
    assert ended.status == 0, ended.err
    made = ended.document["data"]["manifest"]
    assert (made["in_container"], made["carriers"], made["node"]) == (True, ["gloo"], "node-1")
    (horovod,) = (cluster.shell.folder / "by-container").glob("horovod-*.whl")
    assert hashlib.sha256(horovod.read_bytes()).hexdigest() in {each["sha256"] for each in made["wheels"]}
    assert [line for line in everywhere(cluster, LEFT).out.splitlines() if "wheelhouse" in line] == []


def test_horovod_is_built_in_one_node_and_trains_on_both(cluster: Cluster) -> None:
    want(cluster, "base", "./tools.toml")
    done = cluster.configure("--only", "node-1")
    assert done.status == 0, done.err
    assert refusal(build(cluster, "nccl,gloo")) == "runtime.no-cuda"
    check_wheelhouse(build(cluster, "mpi,gloo"), cluster)
    assert [line for line in everywhere(cluster, LEFT).out.splitlines() if "wheelhouse" in line] == []

    packages = f"{runtime.TENSORFLOW}, {HOROVOD}"
    want(cluster, "base", "mpi", "runtime", wheelhouse="wheelhouse", runtime_packages=packages)
    done = cluster.configure()
    assert done.status == 0, done.err
    cluster.shape()
    for launcher in ("horovodrun", "mpirun"):
        how = ("--launcher", launcher, "--results", launcher, "-o", "json")
        (run,) = trained.runs(cluster.shell.here("bench", "cluster.toml", *TRAIN, *how))
        assert {each["verdict"] for each in run["proofs"]} == {"yes"}
        assert run["environment"]["versions"]["horovod"] == "0.28.1"
        assert [(each["rank"], each["node"]) for each in run["placement"]] == [(0, "node-1"), (1, "node-2")]
    assert find_stale_processes(cluster) == []


def check_wheelhouse(ended: Ended, cluster: Cluster) -> None:
    assert ended.status == 0, ended.err
    folder = cluster.shell.folder / "wheelhouse"
    made = json.loads((folder / "manifest.json").read_text())
    assert made == ended.document["data"]["manifest"]
    assert (made["framework"], made["horovod"], made["carriers"]) == (runtime.TENSORFLOW, HOROVOD, ["mpi", "gloo"])
    assert (made["node"], made["mpi"], made["cuda"]) == ("node-1", "Open MPI 5.0.11", "")
    sums = {each["file"]: each["sha256"] for each in made["wheels"]}
    wheels = sorted(folder.glob("*.whl"))
    assert {each.name: hashlib.sha256(each.read_bytes()).hexdigest() for each in wheels} == sums
    (horovod,) = (each for each in made["wheels"] if each["name"] == "horovod")
    assert (horovod["version"], horovod["python_tag"]) == ("0.28.1", made["python_tag"])
