"""`vsml bench regimes` on lab guests with links of 100 Mbit/s: each regime near its own bound, and their order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e import trained
from tests.e2e.launched import find_stale_processes
from tests.e2e.measured import told
from vsphere_ml.lab import runtime

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.trained import Cluster

pytestmark = [*trained.on_guests(), pytest.mark.long]
NODES = 4
RATE = "100mbit"
BETWEEN = {"async", "sync", "sharded", "ring"}
NEAR = 0.15  # of the bound
LAUNCHES = "3"
SMALL = ("--gradient-mbytes", "4", "--samples", "960", "--max-time", "900")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    runtime.make_runtime()
    with trained.cluster(tmp_path_factory.mktemp("regimes")) as made:
        home = runtime.IN_GUESTS
        mpirun = f"{home}/openmpi-4/bin/mpirun"  # whose library Horovod was built with
        made.playbooks("base", "mpi", runtime_path=f"{home}/venv", mpirun=mpirun, mesh_user="root")
        file = made.shell.folder / "cluster.toml"
        file.write_text(file.read_text().replace("node-[1-2]", f"node-[1-{NODES}]"))
        built = made.shell.here("provision", "--yes")
        assert built.status == 0, built.err
        made.shape(RATE)
        yield made


def regimes(cluster: Cluster, record: str, *more: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the launches, and what `explain` says of them."""
    wanted = (*SMALL, *more, "--results", record, "-o", "json")
    return trained.runs(cluster.shell.here("bench", "regimes", "cluster.toml", *wanted)), told(
        cluster, "explain", record
    )


def test_all_seven_are_proven_and_send_what_they_must(cluster: Cluster) -> None:
    runs, seen = regimes(cluster, "seven", "--nodes", "2", "--repeats", "1")
    assert {each["regime"] for each in seen["regimes"]} == {"single", "local-server", "local-allreduce", *BETWEEN}
    for run in runs:
        regime, between = run["configuration"]["options"]["regime"], run["configuration"]["nodes"] > 1
        expected = {"placement", "clean"} | ({"path"} if between else set())
        expected |= {"in_sync"} if regime != "async" else set()
        assert {each["name"]: each["verdict"] for each in run["proofs"]} == dict.fromkeys(expected, "yes")
        assert {each["verdict"] for each in run["traffic"]} == {"expected"}
    losses = {run["configuration"]["options"]["regime"]: run["regime"]["loss"] for run in runs}
    assert losses["sync"] == pytest.approx(losses["ring"], rel=1e-3)  # added up in another order, and no more
    assert losses["sync"] == pytest.approx(losses["sharded"], rel=1e-3)
    assert max(losses.values()) < 1.0  # ln 10 before training
    assert find_stale_processes(cluster) == []


def test_each_is_near_its_bound_and_a_ring_ahead_of_shards_ahead_of_one_server(cluster: Cluster) -> None:
    wanted = [word for each in sorted(BETWEEN) for word in ("--regime", each)]
    _, seen = regimes(cluster, "bounds", "--nodes", f"2-{NODES}", "--repeats", LAUNCHES, *wanted)
    shares = {(each["regime"], each["configuration"]["nodes"]): each["share"] for each in seen["regimes"]}
    assert set(shares) == {(regime, nodes) for regime in BETWEEN for nodes in range(2, NODES + 1)}
    assert {key: share for key, share in shares.items() if abs(share - 1) > NEAR} == {}
    steps = {(each["regime"], each["configuration"]["nodes"]): each["step_s"] for each in seen["regimes"]}
    for nodes in range(2, NODES + 1):
        ring, sharded, one = (steps[regime, nodes] for regime in ("ring", "sharded", "sync"))
        assert sharded["high"] < one["low"]
        # On two nodes both are allowed the same: each node has half of the model and half of the load.
        assert ring["high"] < (sharded if nodes > 2 else one)["low"]


def test_what_one_node_cannot_do_is_a_reason_and_the_others_are_measured(cluster: Cluster) -> None:
    ended = cluster.shell.here(
        "bench", "regimes", "cluster.toml", *SMALL, "--nodes", "1", "--repeats", "1", "--results", "alone", "-o", "json"
    )
    assert {each["code"] for each in ended.document["errors"]} == {"bench.regime-nodes"}
    outcomes = {run["configuration"]["options"]["regime"]: run["outcome"] for run in ended.document["data"]["runs"]}
    assert outcomes == dict.fromkeys(("single", "local-server", "local-allreduce"), "complete") | dict.fromkeys(
        BETWEEN, "refused"
    )
