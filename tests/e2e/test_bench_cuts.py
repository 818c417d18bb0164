"""Launches on lab guests that are cut, refused, or lose a worker or a guest: reported clearly, and nothing stays."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING

import pytest

from tests.e2e import launched, trained
from tests.e2e.launched import LAUNCH_S, RANK, await_ranks, bench, everywhere, find_stale_processes, start
from vsphere_ml.core.nodes.container import SHARED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.trained import Cluster

pytestmark = trained.on_guests()
# In the guest, so that it comes soon after the first step, however busy the machine is.
KILL_AMONG_STEPS = f"""\
until pgrep -f '[t]rain.py' && grep -q '"step"' $(ls -t {SHARED}/*/rank-*.jsonl | head -n 1); do sleep 0.2; done
pkill -9 -f '[t]rain.py'
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with launched.cluster(tmp_path_factory.mktemp("bench")) as made:
        yield made


def test_ctrl_c_leaves_no_process_in_any_guest_and_nothing_of_the_operator_gets_there(cluster: Cluster) -> None:
    process = start(cluster, "--steps", "100000", "--results", "cut", OPERATORS_SECRET="hunter2-operator")
    try:
        await_ranks(cluster)
        seen = everywhere(
            cluster, "cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | grep -ac [h]unter2 || :"
        )
        assert seen.out.splitlines()[-1] == "0"
    finally:
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=LAUNCH_S)
    assert process.returncode == 130, err
    assert find_stale_processes(cluster) == []


def test_a_killed_worker_is_a_clear_failure_and_leaves_nothing(cluster: Cluster) -> None:
    process = start(cluster, "--steps", "100000", "--results", "killed", "-o", "json")
    await_ranks(cluster)
    cluster.shell.here("run", "--sudo", "--only", "node-2", "--", f"pkill -9 -f '{RANK}'")
    out, err = process.communicate(timeout=LAUNCH_S)
    assert process.returncode == 6, err
    (run,) = json.loads(out)["data"]["runs"]
    assert run["outcome"] == "failed"
    assert "horovodrun on node-1 " in run["reason"]
    assert find_stale_processes(cluster) == []


def test_an_elastic_job_goes_on_when_a_node_is_lost(cluster: Cluster) -> None:
    process = start(cluster, "--steps", "100", "--min-nodes", "1", "--results", "elastic", "-o", "json")
    struck = cluster.shell.here("run", "--sudo", "--only", "node-2", "--", KILL_AMONG_STEPS)
    assert struck.status == 0, struck.err
    out, err = process.communicate(timeout=LAUNCH_S)
    assert process.returncode == 0, err
    (run,) = json.loads(out)["data"]["runs"]
    assert [(each["code"], each["target"]) for each in run["diagnostics"]] == [("bench.lost-node", "node-2")]
    assert [each["node"] for each in run["placement"]] == ["node-1"]
    assert run["steps"] is None
    assert [each["ranks"] for each in run["worlds"]] == [2, 1]
    assert run["worlds"][0]["first_step"] == 0
    assert run["worlds"][1]["first_step"] <= len(run["worlds"][0]["step_s"])
    assert run["worlds"][1]["first_step"] + len(run["worlds"][1]["step_s"]) == 100
    assert find_stale_processes(cluster) == []


def test_what_the_guests_cannot_carry_is_said_aloud_and_never_goes_over_tcp(cluster: Cluster) -> None:
    both = ("--transport", "tcp", "--transport", "roce", "--workload", "allreduce", "--results", "both", "-o", "json")
    done = bench(cluster, *both)
    assert done.status == 3, done.err
    tcp, roce = done.document["data"]["runs"]
    assert (tcp["configuration"]["transport"], tcp["outcome"]) == ("tcp", "complete")
    assert (roce["configuration"]["transport"], roce["outcome"], roce["sweep"]) == ("roce", "refused", [])
    assert "NCCL needs a GPU " in roce["reason"]
    assert any("allreduce, 2 nodes" in line and ", roce" in line for line in done.err.splitlines())


def test_what_an_earlier_run_left_is_ended_and_what_others_run_is_refused(cluster: Cluster) -> None:
    left = "VSML_BENCH_RUN=old setsid sleep 900 </dev/null >/dev/null 2>&1 &"
    assert cluster.shell.here("run", "--sudo", "--only", "node-2", "--", left).status == 0
    others = "HOROVOD_RANK=1 setsid sleep 901 </dev/null >/dev/null 2>&1 & echo $!"
    assert cluster.shell.here("run", "--sudo", "--only", "node-1", "--", others).status == 0
    refused = bench(cluster, "--results", "refused")
    assert refused.status == 6
    assert "node-1: 1 processes " in refused.err
    assert "node-2: ended 1 process " in refused.err
    assert find_stale_processes(cluster) == []
    assert cluster.shell.here("run", "--sudo", "--only", "node-1", "--", "pkill -f '[s]leep 901'").status == 0


def test_a_host_key_that_changed_ends_the_launch_though_horovodrun_would_not_mind(cluster: Cluster) -> None:
    known = "/root/.ssh/vsml-train-known_hosts"
    spoil = f"cp {known} {known}.was; sed -i 's/AAAAC3NzaC1lZDI1NTE5AAAAI./AAAAC3NzaC1lZDI1NTE5AAAAIz/' {known}"
    assert cluster.shell.here("run", "--sudo", "--only", "node-1", "--", spoil).status == 0
    try:
        refused = bench(cluster, "--results", "spoilt")
        assert refused.status == 6
        assert "SSH host key " in refused.err
    finally:
        cluster.shell.here("run", "--sudo", "--only", "node-1", "--", f"mv {known}.was {known}")


def test_a_guest_that_is_lost_leaves_failed_launches_and_the_rest_is_not_begun(cluster: Cluster) -> None:
    process = start(cluster, "--steps", "100000", "--repeats", "3", "--results", "lost", "-o", "json")
    await_ranks(cluster)
    try:
        for fault in ("ssh-refused", "cut"):
            assert cluster.shell.here("lab", "fault", "node-2", fault).status == 0
        out, err = process.communicate(timeout=LAUNCH_S)
    finally:
        cluster.shell.here("lab", "fault", "node-2", "--clear")
    assert process.returncode == 6, err
    launched, refused = json.loads(out)["data"]["runs"]
    assert (launched["outcome"], refused["outcome"]) == ("failed", "failed")
    assert "horovodrun on node-1 " in launched["reason"]
    assert "node-2" in refused["reason"]
    assert len(list((cluster.shell.folder / "lost").glob("*.json"))) == 2
