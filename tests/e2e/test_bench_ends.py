"""`vsml bench` ends, whatever dies on lab guests: its script, the disk, SSH, vsml itself. The record says so."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e import trained
from tests.e2e.conftest import Ended
from vsphere_ml.core.nodes.container import SHARED
from vsphere_ml.lab import runtime
from vsphere_ml.lab.guests import faults

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator

    from tests.e2e.trained import Cluster

pytestmark = trained.on_guests()
ENDS_S = 600  # as long as no bench here takes, on a busy machine either
FOREVER = "import time\nprint('it has begun')\ntime.sleep(3600)\n"
# Of this script alone: whatever else is called so in a guest is none of ours.
SCRIPT = "[j]ob.sh"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    runtime.make_runtime()
    with trained.cluster(tmp_path_factory.mktemp("ends")) as made:
        home = runtime.IN_GUESTS
        made.playbooks(
            "base", "mpi", runtime_path=f"{home}/venv", mpirun=f"{home}/openmpi-4/bin/mpirun", mesh_user="root"
        )
        done = made.configure()
        assert done.status == 0, done.err
        made.shape()
        made.shell.write("forever.py", FOREVER)
        yield made


def start(cluster: Cluster, into: str, *more: str, limit: int = 3600) -> subprocess.Popen[str]:
    words = ("--script", "forever.py", "--max-time", str(limit), "--results", into, "-o", "json")
    return cluster.shell.start("bench", "cluster.toml", *words, *more)


def ended(process: subprocess.Popen[str]) -> Ended:
    out, err = process.communicate(timeout=ENDS_S)
    return Ended(process.returncode, out, err)


def on(cluster: Cluster, node: str, command: str) -> Ended:
    return cluster.shell.here("run", "--sudo", "--only", node, "--", command)


def begun(process: subprocess.Popen[str]) -> None:
    """Come back when both ranks have printed their line, which is shown while they run."""
    assert process.stderr is not None
    seen: list[str] = []
    while len([line for line in seen if "it has begun" in line]) < 2:
        line = process.stderr.readline()
        assert line, "".join(seen)
        seen.append(line)


def nothing_is_left(cluster: Cluster) -> None:
    seen = cluster.shell.here("run", "--sudo", "--", "grep -lz ^VSML_BENCH_RUN= /proc/[0-9]*/environ 2>/dev/null || :")
    assert seen.status == 0, seen.err
    assert "/proc" not in seen.out


def recorded(cluster: Cluster, into: str) -> list[dict[str, Any]]:
    return [json.loads(file.read_text()) for file in sorted((cluster.shell.folder / into).glob("*.json"))]


def test_a_killed_script_ends_the_launch_at_once(cluster: Cluster) -> None:
    process = start(cluster, "killed")
    begun(process)
    assert on(cluster, "node-1", f"pkill -9 -f '{SCRIPT}'").status == 0
    done = ended(process)
    assert (done.status, done.document["errors"][0]["code"]) == (6, "bench.no-status"), done.err
    (run,) = recorded(cluster, "killed")
    assert (run["outcome"], run["diagnostics"]) == ("failed", [])
    nothing_is_left(cluster)


def test_a_full_disk_ends_the_launch_though_no_status_can_be_written_and_is_named(cluster: Cluster) -> None:
    process = start(cluster, "full")
    vm = cluster.moid("node-1")
    try:
        begun(process)
        assert cluster.shell.here("lab", "fault", "node-1", "disk-full").status == 0
        faults.run_in_guest(cluster.home, vm, "pkill -f '[f]orever.py'")
        done = ended(process)
    finally:
        cluster.shell.here("lab", "fault", "node-1", "--clear")
    assert (done.status, done.document["errors"][0]["code"]) == (6, "bench.no-status"), done.err
    (run,) = recorded(cluster, "full")
    assert run["outcome"] == "failed"
    assert "is full" in run["reason"]
    nothing_is_left(cluster)


def test_a_path_without_programs_ends_the_launch_by_its_limit(cluster: Cluster) -> None:
    done = ended(start(cluster, "path", "--env", "PATH=/x", limit=30))
    assert (done.status, done.document["errors"][0]["code"]) == (6, "bench.launch-failed"), done.err
    (run,) = recorded(cluster, "path")
    assert run["outcome"] == "failed"
    nothing_is_left(cluster)


@pytest.mark.faults  # it waits for answers; with a clock that is moved: tests/unit/flows/bench/test_watch.py
def test_an_sshd_that_went_silent_ends_the_launch_and_is_told(cluster: Cluster) -> None:
    process = start(cluster, "silent")
    vm = cluster.moid("node-1")
    begun(process)
    try:
        faults.run_in_guest(cluster.home, vm, "pkill -STOP sshd")
        done = ended(process)
    finally:
        faults.run_in_guest(cluster.home, vm, "pkill -CONT sshd")
    assert done.status in {5, 6}, done.err
    (run,) = recorded(cluster, "silent")
    assert run["outcome"] == "failed"
    assert [(each["code"], each["target"]) for each in run["diagnostics"]] == [("bench.processes-left", "node-1")]


def test_a_killed_vsml_leaves_a_record_that_says_so(cluster: Cluster) -> None:
    process = start(cluster, "cut")
    try:
        begun(process)
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    (run,) = recorded(cluster, "cut")
    assert run["outcome"] == "cut"
    ended = cluster.shell.here("bench", "report", "cut", "-o", "json")
    assert ended.status == 0, ended.err
    assert [each["outcome"] for each in ended.document["data"]["skipped"]] == ["cut"]
    # Nobody looks after it any more, which the next benchmark need not wait a minute to see.
    assert cluster.shell.here("run", "--sudo", "--", f"rm -rf {SHARED}/*").status == 0


@pytest.mark.long
def test_bench_baseline_and_gate_without_options_fit_each_other(cluster: Cluster) -> None:
    """However busy the machine is: what launches differ by, the baseline allows."""
    for command in (("bench",), ("bench", "baseline", "make"), ("bench", "gate")):
        made = cluster.shell.here(*command)
        assert made.status == 0, made.err
