"""The ledger of bytes on lab guests: what Gloo and MPICH really send, and faults that leave every sum right."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e import measured, trained
from tests.e2e.measured import MPICH, ONCE, OPEN_MPI_5, bench, settings
from vsphere_ml.bench.launch import remote_job
from vsphere_ml.bench.proof.ledger import MPICH_RING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.e2e.trained import Cluster

pytestmark = [*trained.on_guests(), pytest.mark.long]
NODES = 4
SIZES = ("1048576", "4194304", "16777216")
ALLREDUCE = ("--workload", "allreduce", "--iters", "10", "--max-time", "900")
THREE = ("--only", "node-1", "--only", "node-2", "--only", "node-3")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with measured.cluster(tmp_path_factory.mktemp("ledger"), nodes=NODES) as made:
        yield made


@pytest.mark.parametrize(
    ("runtime", "how"),
    [
        (OPEN_MPI_5, ("--launcher", "horovodrun", "--backend", "gloo")),
        (
            MPICH,
            ("--launcher", "mpirun", "--env", "=".join(MPICH_RING), "--env", "HOROVOD_MPI_THREADS_DISABLE=1"),
        ),
    ],
    ids=["gloo", "mpich"],
)
def test_each_guest_sends_what_a_ring_must(
    cluster: Cluster, runtime: dict[str, str], how: tuple[str, ...], request: pytest.FixtureRequest
) -> None:
    settings(cluster, runtime, NODES)
    record = request.node.callspec.id
    wanted = (*ONCE, *ALLREDUCE, *how, "--nodes", "2-4", "--sizes", ",".join(SIZES), "--results", record)
    runs = trained.runs(bench(cluster.shell, *wanted))
    seen = {
        (run["configuration"]["nodes"], each["node"], each["size_bytes"]): each
        for run in runs
        for each in run["traffic"]
    }
    assert len(seen) == sum(range(2, NODES + 1)) * len(SIZES)
    assert {each["verdict"] for each in seen.values()} == {"expected"}
    for each in seen.values():
        assert each["counted_bytes"] == pytest.approx(each["expected_bytes"], rel=0.02)


# What stands in the workload's all-reduce, and what takes its place: every sum is right all the same.
PLAIN = 'return hvd.allreduce(values, op=hvd.Sum, name=f"sweep.{size}")'
TOTAL = "tf.fill(tf.shape(values), hvd.size() * (hvd.size() + 1) / 2.0)"
START = "    hvd.init()\n"
FAULTS = {
    "twice": {
        PLAIN: 'mean = hvd.allreduce(values, op=hvd.Average, name=f"first.{size}")\n'
        '        return hvd.allreduce(mean, op=hvd.Sum, name=f"sweep.{size}")'
    },
    "half": {PLAIN: 'return hvd.allreduce(values, op=hvd.Sum, name=f"sweep.{size}", compression=hvd.Compression.fp16)'},
    "nothing": {PLAIN: f"return {TOTAL}"},
    "fewer-ranks": {
        START: "    hvd.pair = hvd.ProcessSet([0, 1])\n    hvd.init(process_sets=[hvd.pair])\n",
        PLAIN: "if hvd.rank() < 2:\n"
        '            return 2.0 * hvd.allreduce(values, op=hvd.Sum, name=f"sweep.{size}", process_set=hvd.pair)\n'
        f"        return {TOTAL}",
    },
    "other-interface": {},  # the guests' routes are what is wrong
}


# Sockets have the right addresses then, and only the bytes tell.
BY_ETH1 = """\
own=$(hostname | tail -c 2)
ip address replace 10.98.0.$own/24 dev eth1 && ip link set eth1 up
for n in 1 2 3; do
    [ $n = $own ] || ip route replace $(getent hosts node-$n | cut -d' ' -f1)/32 via 10.98.0.$n dev eth1
done
"""


def plant(patch: pytest.MonkeyPatch, folder: Path, fault: dict[str, str]) -> None:
    """Let guests be brought a workload with this fault in it."""
    made = folder / "workloads"
    shutil.copytree(remote_job.WORKLOADS, made)
    text = (made / "allreduce.py").read_text()
    for right, wrong in fault.items():
        assert right in text
        text = text.replace(right, wrong)
    (made / "allreduce.py").write_text(text)
    patch.setattr(remote_job, "WORKLOADS", made)


@pytest.mark.parametrize("verdict", FAULTS)
def test_a_fault_that_no_sum_shows_is_named_by_the_bytes(
    cluster: Cluster, verdict: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    settings(cluster, OPEN_MPI_5, NODES)
    if verdict == "other-interface":
        assert cluster.shell.here("run", "--sudo", *THREE, "--", BY_ETH1).status == 0
    plant(monkeypatch, tmp_path, FAULTS[verdict])
    wanted = (*ONCE, *ALLREDUCE, *THREE, "--sizes", SIZES[1], "--results", f"fault-{verdict}")
    (run,) = bench(cluster.shell, *wanted).document["data"]["runs"]
    assert proofs(run)["in_sync"] == "yes"
    found = {each["node"]: each["verdict"] for each in run["traffic"]}
    left_out = {"node-3": "nothing"} if verdict == "fewer-ranks" else {}
    assert found == {f"node-{each}": verdict for each in (1, 2, 3)} | left_out
    codes = {each["code"] for each in measured.told(cluster, "explain", f"fault-{verdict}")["diagnostics"]}
    assert f"bench.traffic-{verdict}" in codes


def proofs(run: dict[str, Any]) -> dict[str, str]:
    return {each["name"]: each["verdict"] for each in run["proofs"]}
