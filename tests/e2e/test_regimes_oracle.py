"""TensorFlow's own parameter server as an oracle for `--regime async`: the bytes of a step, and the loss."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e import launched, trained
from vsphere_ml.bench.launch import remote_job

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.trained import Cluster

pytestmark = [*trained.on_guests(), pytest.mark.long]
NODES = 3
SAMPLES, BATCH, MBYTES = 960, 16, 4
# Of the bytes of a step: TensorFlow sends samples with each step, and gRPC's frames around all (under 1 % together).
BYTES_NEAR = 0.03
# Of the loss: how far workers are behind each other is chance, and moves it by 1 to 2 % in records of one cluster.
LOSS_NEAR = 0.05
PRINTED = re.compile(r'\{"rank".*\}')


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with launched.cluster(tmp_path_factory.mktemp("oracle")) as made:
        file = made.shell.folder / "cluster.toml"
        file.write_text(file.read_text().replace("node-[1-2]", f"node-[1-{NODES}]"))
        built = made.shell.here("provision", "--yes")
        assert built.status == 0, built.err
        made.shape()
        yield made


def async_regime(cluster: Cluster) -> dict[str, Any]:
    """Return the launch of two workers, with the server beside the first."""
    small = ("--gradient-mbytes", str(MBYTES), "--samples", str(SAMPLES), "--batch", str(BATCH), "--repeats", "1")
    wanted = ("--regime", "async", "--nodes", str(NODES - 1), *small, "--results", "async", "-o", "json")
    (run,) = trained.runs(cluster.shell.here("bench", "regimes", "cluster.toml", *wanted))
    return run


def oracle(cluster: Cluster, parameters: int) -> list[dict[str, Any]]:
    """Return what TensorFlow's ranks print: a server on a node of its own and two workers."""
    folder = cluster.shell.folder / "oracle"
    folder.mkdir()
    for name in ("regimes.py", "allreduce.py", "train.py", "exchanges.py", "parameter_server.py"):
        shutil.copy(remote_job.WORKLOADS / name, folder)
    shutil.copy(Path(__file__).parent / "oracles" / "tf_parameter_server.py", folder)
    numbers = {"parameters": parameters, "samples": SAMPLES, "batch": BATCH}
    options = [word for name, value in numbers.items() for word in (f"--{name}", str(value))]
    words = ("python", "tf_parameter_server.py", "--by", "servers", *options)
    ended = cluster.shell.here("job", "run", "--launcher", "none", "--folder", "oracle", "--", *words)
    assert ended.status == 0, ended.err
    return sorted((json.loads(each) for each in PRINTED.findall(ended.out)), key=lambda each: int(each["rank"]))


def test_a_step_sends_as_much_and_comes_to_the_same_loss(cluster: Cluster) -> None:
    run = async_regime(cluster)
    # Of two workers one is beside the server: half of the steps cross the network.
    steps = SAMPLES / BATCH / 2
    ours = sum(each["counted_bytes"] for each in run["traffic"]) / steps
    leader, *workers = oracle(cluster, run["configuration"]["parameters"])
    assert leader["size_bytes"] == run["regime"]["size_bytes"]
    theirs = sum(sent for each in (leader, *workers) for sent, _ in each["sent"].values()) / leader["steps"]
    assert theirs == pytest.approx(ours, rel=BYTES_NEAR)
    assert ours == pytest.approx(2 * run["regime"]["size_bytes"], rel=0.1)
    assert leader["loss"] == pytest.approx(run["regime"]["loss"], rel=LOSS_NEAR)
