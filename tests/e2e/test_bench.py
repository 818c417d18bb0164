"""`vsml bench` on lab guests: TensorFlow and Horovod really train there, between systems with networks of their own."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e import trained
from tests.e2e.conftest import Ended
from tests.waiting import until
from vsphere_ml.core.container import SHARED
from vsphere_ml.lab import runtime

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator

    from tests.e2e.trained import Cluster

pytestmark = trained.on_guests()
LAUNCH_S = 1200
MINE = """\
import json, os, sys
with open(os.environ["VSML_BENCH_FILE"], "a") as lines:
    lines.write(json.dumps({"kind": "step", "seconds": float(sys.argv[1])}) + "\\n")
"""
# In the guest, so that it comes soon after the first step, however busy the machine is.
KILL_AMONG_STEPS = f"""\
until pgrep -f '[t]rain.py' && grep -q '"step"' $(ls -t {SHARED}/*/rank-*.jsonl | head -n 1); do sleep 0.2; done
pkill -9 -f '[t]rain.py'
"""
SMALL = ("--repeats", "1", "--steps", "30", "--sizes", "1048576,4194304", "--sweeps", "3", "--limit", "900")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    runtime.made()
    with trained.cluster(tmp_path_factory.mktemp("bench")) as made:
        _settings(made, "openmpi-4")
        done = made.configure()
        assert done.status == 0, done.err
        yield made


def _settings(cluster: Cluster, mpi: str) -> None:
    home = runtime.IN_GUESTS
    cluster.playbooks("base", "mpi", runtime_path=f"{home}/venv", mpirun=f"{home}/{mpi}/bin/mpirun", mesh_user="root")


def bench(cluster: Cluster, *more: str, **env: str) -> Ended:
    process = start(cluster, *more, **env)
    out, err = process.communicate(timeout=LAUNCH_S)
    return Ended(process.returncode, out, err)


def start(cluster: Cluster, *more: str, **env: str) -> subprocess.Popen[str]:
    return cluster.shell.start("bench", "cluster.toml", *SMALL, *more, **env)


def everywhere(cluster: Cluster, command: str) -> Ended:
    return cluster.shell.vsml("run", "--", command)


def training(cluster: Cluster) -> bool:
    """Return whether each guest runs a rank."""
    return everywhere(cluster, "pgrep -f '[t]rain.py'").status == 0


def leftovers(cluster: Cluster) -> list[str]:
    seen = everywhere(cluster, "grep -lz ^VSML_BENCH_RUN= /proc/[0-9]*/environ 2>/dev/null || :")
    assert seen.status == 0, seen.err
    return [line for line in seen.out.splitlines() if line.startswith("/proc")]


def test_two_nodes_train_and_reduce_and_the_record_proves_it(cluster: Cluster) -> None:
    wanted = ("--workload", "train", "--workload", "allreduce", "--into", "first", "-o", "json")
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
    assert [len(rank) for rank in learned["steps"]["step_s"]] == [30, 30]
    assert [point["size_bytes"] for point in reduced["sweep"]] == [1048576, 4194304]
    # The second time the record has it all, and nothing is launched.
    again = bench(cluster, *wanted)
    assert [each["run_id"] for each in trained.runs(again)] == [reduced["run_id"], learned["run_id"]]
    assert "the record has 2 of them" in again.err
    assert "1/1" not in again.err
    # Planned otherwise, the same wish is another measurement: it does not go into this record.
    _settings(cluster, "openmpi-5")
    refused = bench(cluster, *wanted)
    assert (refused.status, refused.document["errors"][0]["code"]) == (3, "record.other-conditions")


def assert_made_again_from(run: dict[str, Any]) -> None:
    """Assert that the record has what a person needs to make the launch again, and says what nobody told."""
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
    assert "no device with a link of its own" in run["link"]["line_rate_source"]


def shaped(cluster: Cluster, rate: str) -> tuple[float, float]:
    """Return the bus bandwidth of 4 MiB and more at its best, and what iperf3 got through, in bytes per second."""
    assert cluster.shell.vsml("lab", "shape", "--rate", rate).status == 0
    try:
        (run,) = trained.runs(bench(cluster, "--workload", "allreduce", "--into", rate, "-o", "json"))
    finally:
        cluster.shell.vsml("lab", "shape", "--rate", "none")
    point = run["sweep"][-1]
    return point["size_bytes"] / min(point["time_s"]), run["link"]["calibrated_bytes_per_s"]


def test_compressed_gradients_keep_two_nodes_in_sync(cluster: Cluster) -> None:
    wanted = ("--workload", "train", "--gradients", "fp32", "--gradients", "fp16", "--into", "halves", "-o", "json")
    found = trained.runs(bench(cluster, *wanted))
    assert [run["configuration"]["gradients"] for run in found] == ["fp32", "fp16"]
    for run in found:
        assert {each["name"]: each["verdict"] for each in run["proofs"]}["in_sync"] == "yes"


def test_a_link_of_a_fifth_makes_the_figure_a_fifth(cluster: Cluster) -> None:
    fast, fast_link = shaped(cluster, "100mbit")
    slow, slow_link = shaped(cluster, "20mbit")
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
            "--half-width",
            "0",
            "--seconds",
            "8",
            "--into",
            "short",
            "-o",
            "json",
        )
    )
    assert 10 < len(run["steps"]["step_s"][0]) < 100000
    assert [each["message"] for each in run["remarks"]] == ["ended before its last step: the time is up"]
    cluster.shell.write("mine.py", MINE)
    (mine,) = trained.runs(
        bench(cluster, "--script", "mine.py", "--arguments", "0.25 b", "--into", "mine", "-o", "json")
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
    _settings(cluster, mpi)
    (run,) = trained.runs(
        bench(cluster, "--launcher", "mpirun", "--workload", "allreduce", "--into", mpi, "-o", "json")
    )
    assert [each["node"] for each in run["placement"]] == ["node-1", "node-2"]
    assert run["configuration"]["options"]["mpi"].startswith(mpi[-1])


def test_horovodrun_goes_by_open_mpi_when_asked(cluster: Cluster) -> None:
    _settings(cluster, "openmpi-4")
    (run,) = trained.runs(
        bench(cluster, "--backend", "mpi", "--workload", "allreduce", "--into", "horovodrun", "-o", "json")
    )
    assert [each["node"] for each in run["placement"]] == ["node-1", "node-2"]
    assert (run["configuration"]["launcher"], run["configuration"]["backend"]) == ("horovodrun", "mpi")


def test_ctrl_c_leaves_no_process_in_any_guest_and_nothing_of_the_operator_gets_there(cluster: Cluster) -> None:
    process = start(cluster, "--steps", "100000", "--into", "cut", OPERATORS_SECRET="hunter2-operator")
    try:
        until(lambda: training(cluster), "no rank trains")
        seen = everywhere(
            cluster, "cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | grep -ac [h]unter2 || :"
        )
        assert seen.out.splitlines()[-1] == "0"
    finally:
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=LAUNCH_S)
    assert process.returncode == 130, err
    assert leftovers(cluster) == []


def test_a_killed_worker_is_a_clear_failure_and_leaves_nothing(cluster: Cluster) -> None:
    process = start(cluster, "--steps", "100000", "--into", "killed", "-o", "json")
    until(lambda: training(cluster), "no rank trains")
    cluster.shell.vsml("run", "--only", "node-2", "--", "pkill -9 -f '[t]rain.py'")
    out, err = process.communicate(timeout=LAUNCH_S)
    assert process.returncode == 6, err
    (run,) = json.loads(out)["data"]["runs"]
    assert run["outcome"] == "failed"
    assert "horovodrun on node-1 ended with status" in run["reason"]
    assert leftovers(cluster) == []


def test_an_elastic_job_goes_on_when_a_node_is_lost(cluster: Cluster) -> None:
    process = start(cluster, "--steps", "300", "--least-nodes", "1", "--into", "elastic", "-o", "json")
    struck = cluster.shell.vsml("run", "--only", "node-2", "--", KILL_AMONG_STEPS)
    assert struck.status == 0, struck.err
    out, err = process.communicate(timeout=LAUNCH_S)
    assert process.returncode == 0, err
    (run,) = json.loads(out)["data"]["runs"]
    assert [(each["code"], each["target"]) for each in run["remarks"]] == [("bench.lost-node", "node-2")]
    assert [each["node"] for each in run["placement"]] == ["node-1"]
    assert run["steps"] is None
    assert [each["ranks"] for each in run["worlds"]] == [2, 1]
    assert run["worlds"][0]["first_step"] == 0
    assert run["worlds"][1]["first_step"] <= len(run["worlds"][0]["step_s"])
    assert run["worlds"][1]["first_step"] + len(run["worlds"][1]["step_s"]) == 300
    assert leftovers(cluster) == []


def test_what_the_guests_cannot_carry_is_said_aloud_and_never_goes_over_tcp(cluster: Cluster) -> None:
    both = ("--transport", "tcp", "--transport", "roce", "--workload", "allreduce", "--into", "both", "-o", "json")
    done = bench(cluster, *both)
    assert done.status == 3, done.err
    tcp, roce = done.document["data"]["runs"]
    assert (tcp["configuration"]["transport"], tcp["outcome"]) == ("tcp", "complete")
    assert (roce["configuration"]["transport"], roce["outcome"], roce["sweep"]) == ("roce", "failed", [])
    assert "NCCL needs a GPU in each guest" in roce["reason"]
    assert "cannot be made: allreduce, 2 nodes, 2 ranks, roce" in done.err


def test_what_an_earlier_run_left_is_ended_and_what_others_run_is_refused(cluster: Cluster) -> None:
    left = "VSML_BENCH_RUN=old setsid sleep 900 </dev/null >/dev/null 2>&1 &"
    assert cluster.shell.vsml("run", "--only", "node-2", "--", left).status == 0
    others = "HOROVOD_RANK=1 setsid sleep 901 </dev/null >/dev/null 2>&1 & echo $!"
    assert cluster.shell.vsml("run", "--only", "node-1", "--", others).status == 0
    refused = bench(cluster, "--into", "refused")
    assert refused.status == 6
    assert "node-1: 1 processes of a distributed job run there that vsml did not start" in refused.err
    assert "node-2: ended 1 process that an earlier run left" in refused.err
    assert leftovers(cluster) == []
    assert cluster.shell.vsml("run", "--only", "node-1", "--", "pkill -f '[s]leep 901'").status == 0


def test_a_host_key_that_changed_ends_the_launch_though_horovodrun_would_not_mind(cluster: Cluster) -> None:
    known = "/root/.ssh/vsml-train-known_hosts"
    spoil = f"cp {known} {known}.was; sed -i 's/AAAAC3NzaC1lZDI1NTE5AAAAI./AAAAC3NzaC1lZDI1NTE5AAAAIz/' {known}"
    assert cluster.shell.vsml("run", "--only", "node-1", "--", spoil).status == 0
    try:
        refused = bench(cluster, "--into", "spoilt")
        assert refused.status == 6
        assert "a node's SSH host key is not the one that is pinned in the mesh" in refused.err
    finally:
        cluster.shell.vsml("run", "--only", "node-1", "--", f"mv {known}.was {known}")


def test_a_guest_that_is_lost_leaves_failed_launches_and_the_rest_is_not_begun(cluster: Cluster) -> None:
    process = start(cluster, "--steps", "100000", "--repeats", "3", "--into", "lost", "-o", "json")
    until(lambda: training(cluster), "no rank trains")
    try:
        for fault in ("ssh-refused", "cut"):
            assert cluster.shell.vsml("lab", "fault", "node-2", fault).status == 0
        out, err = process.communicate(timeout=LAUNCH_S)
    finally:
        cluster.shell.vsml("lab", "fault", "node-2", "--clear")
    assert process.returncode == 6, err
    launched, refused = json.loads(out)["data"]["runs"]
    assert (launched["outcome"], refused["outcome"]) == ("failed", "failed")
    assert "horovodrun on node-1 ended with status" in launched["reason"]
    assert "node-2" in refused["reason"]
    assert len(list((cluster.shell.folder / "lost").glob("*.json"))) == 2
