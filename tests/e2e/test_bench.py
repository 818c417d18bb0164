"""`vsml bench` on lab guests: TensorFlow and Horovod really train there, between systems with networks of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e import launched, trained
from tests.e2e.alike import assert_average
from tests.e2e.launched import bench, settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.trained import Cluster

pytestmark = trained.on_guests()
MINE = """\
import json, os, sys
with open(os.environ["VSML_BENCH_FILE"], "a") as lines:
    lines.write(json.dumps({"kind": "step", "seconds": float(sys.argv[1])}) + "\\n")
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with launched.cluster(tmp_path_factory.mktemp("bench")) as made:
        yield made


def test_two_nodes_train_and_reduce_and_the_record_proves_it(cluster: Cluster) -> None:
    wanted = ("--workload", "train", "--workload", "allreduce", "--results", "first", "-o", "json")
    reduced, learned = trained.runs(bench(cluster, *wanted))
    for run in (reduced, learned):
        assert (run["outcome"], run["lab"]) == ("complete", True)
        assert {each["name"]: each["verdict"] for each in run["proofs"]} == {
            "placement": "yes",
            "in_sync": "yes",
            "path": "yes",
            "clean": "yes",
        }
        assert [(each["rank"], each["node"], each["hostname"]) for each in run["placement"]] == [
            (0, "node-1", "node-1"),
            (1, "node-2", "node-2"),
        ]
        assert len({each["host"] for each in run["placement"]}) == 2
        assert (run["environment"]["versions"]["tensorflow"], run["environment"]["versions"]["horovod"]) == (
            "2.21.0",
            "0.28.1",
        )
        assert_made_again_from(run)
    assert [len(rank) for rank in learned["steps"]["step_s"]] == [15, 15]
    assert_time_adds_up(learned)
    assert [point["size_bytes"] for point in reduced["sweep"]] == [1048576, 4194304]
    # The second time the record has it all, and nothing is launched.
    again = bench(cluster, *wanted)
    assert [each["run_id"] for each in trained.runs(again)] == [reduced["run_id"], learned["run_id"]]
    assert " has 2 of " in again.err
    assert "1/1" not in again.err
    # Planned otherwise, the same request is another measurement: it does not go into this record.
    settings(cluster, "openmpi-5")
    refused = bench(cluster, *wanted)
    assert (refused.status, refused.document["errors"][0]["code"]) == (3, "record.other-conditions")


def assert_time_adds_up(run: dict[str, Any]) -> None:
    """Assert that each rank's periods come to its wall time, and that what kept CPUs from running stands beside."""
    steps = run["steps"]
    assert [len(rank) for rank in steps["local"]["compute_s"]] == [3, 3]
    for rank, wall in enumerate(steps["wall_s"]):
        periods = sum(steps["step_s"][rank]) + sum(steps["local"]["period_s"][rank])
        assert periods == pytest.approx(wall, rel=0.005)
    assert [each["node"] for each in run["contention"]] == ["node-1", "node-2"]
    assert all(each["steal"] is not None and each["pressure"] is not None for each in run["contention"])


def assert_made_again_from(run: dict[str, Any]) -> None:
    """Assert that the record has what a person needs to make the launch again, and says what is unknown."""
    assert run["cluster"]["plan_digest"].startswith("sha256:")
    assert list(run["cluster"]["playbook_digests"]) == ["base", "mpi"]
    settings = run["cluster"]["vm_settings"]["node-1"]
    assert settings["esxi_host"] == run["placement"][0]["host"]
    assert settings["pciPassthru.use64bitMMIO"] == "TRUE"
    assert (settings["hardware_version"], settings["memory_reservation_locked"]) == ("20", "yes")
    assert run["placement"][0]["locality"] == "same PCIe switch"
    assert run["environment"]["invocation"][:2] == ["vsml", "bench"]
    assert run["environment"]["timezone"].startswith("UTC")
    assert run["link"]["line_rate_bits_per_s"] is None
    assert run["link"]["congestion_control"] in {"cubic", "reno"}
    assert "no device" in run["link"]["line_rate_source"]


def shaped(cluster: Cluster, rate: str) -> tuple[float, float]:
    """Return the bus bandwidth of 4 MiB and more at its best, and what iperf3 got through, in bytes per second."""
    cluster.shape(rate)
    try:
        wanted = ("--workload", "allreduce", "--sizes", "4194304", "--results", rate, "-o", "json")
        (run,) = trained.runs(bench(cluster, *wanted))
    finally:
        cluster.shape()
    point = run["sweep"][-1]
    return point["size_bytes"] / min(point["time_s"]), run["link"]["calibrated_bytes_per_s"]


def test_compressed_gradients_keep_two_nodes_in_sync(cluster: Cluster) -> None:
    wanted = (
        "--workload",
        "train",
        "--compression",
        "fp16",
        "--results",
        "halves",
        "-o",
        "json",
    )
    (run,) = trained.runs(bench(cluster, *wanted))
    assert run["configuration"]["gradients"] == "fp16"
    assert {each["name"]: each["verdict"] for each in run["proofs"]}["in_sync"] == "yes"


@pytest.mark.long  # `selftest`, in the ring `alone`, holds more of it
def test_a_link_of_a_fifth_makes_the_figure_a_fifth(cluster: Cluster) -> None:
    fast, fast_link = shaped(cluster, "50mbit")
    slow, slow_link = shaped(cluster, "10mbit")
    assert 4 < fast_link / slow_link < 6
    assert 0.7 < slow / slow_link < 1.05
    assert fast / slow > 2.5


def test_training_ends_when_its_time_is_up_and_a_program_of_ones_own_is_proven_too(cluster: Cluster) -> None:
    (run,) = trained.runs(
        bench(
            cluster,
            "--nodes",
            "1",
            "--steps",
            "100000",
            "--ci-target",
            "0",
            "--seconds",
            "8",
            "--results",
            "short",
            "-o",
            "json",
        )
    )
    # How many there are in the time says more about the machine's load than about the code.
    assert 1 < len(run["steps"]["step_s"][0]) < 100000
    assert [each["message"] for each in run["diagnostics"]] == ["ended before its last step: the time is up"]
    cluster.shell.write("mine.py", MINE)
    (mine,) = trained.runs(
        bench(cluster, "--script", "mine.py", "--script-args", "0.25 b", "--results", "mine", "-o", "json")
    )
    assert [each["node"] for each in mine["placement"]] == ["node-1", "node-2"]
    assert mine["steps"]["step_s"] == [[0.25], [0.25]]
    assert {each["name"]: each["verdict"] for each in mine["proofs"]} == {
        "placement": "yes",
        "path": "unknown",
        "clean": "yes",
    }


@pytest.mark.parametrize("mpi", ["openmpi-4", "openmpi-5"])
def test_mpirun_of_both_families_puts_a_rank_on_each_node(cluster: Cluster, mpi: str) -> None:
    settings(cluster, mpi)
    (run,) = trained.runs(
        bench(cluster, "--launcher", "mpirun", "--workload", "allreduce", "--results", mpi, "-o", "json")
    )
    assert [each["node"] for each in run["placement"]] == ["node-1", "node-2"]
    assert run["configuration"]["options"]["mpi"].startswith(mpi[-1])


def test_horovodrun_goes_by_open_mpi_when_asked(cluster: Cluster) -> None:
    settings(cluster, "openmpi-4")
    (run,) = trained.runs(
        bench(cluster, "--backend", "mpi", "--workload", "allreduce", "--results", "horovodrun", "-o", "json")
    )
    assert [each["node"] for each in run["placement"]] == ["node-1", "node-2"]
    assert (run["configuration"]["launcher"], run["configuration"]["backend"]) == ("horovodrun", "mpi")


@pytest.mark.long
def test_gradients_are_averaged_and_not_added_up(cluster: Cluster) -> None:
    assert_average(cluster, "tensorflow_horovod", "horovodrun")
