"""`vsml bench --run-in container` on lab guests: ranks start by `docker exec`. Docker is a stand-in without sshd."""

from __future__ import annotations

import base64
import os
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e import trained
from tests.e2e.conftest import DEADLINE_S
from tests.e2e.launched import await_ranks, find_stale_processes
from vsphere_ml.lab import runtime

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.conftest import Ended
    from tests.e2e.trained import Cluster

pytestmark = trained.on_guests()
# Which mount namespace a rank is in: the lab's stand-in of Docker gives each container one of its own.
FILE = "/var/tmp/vsml-bench/where"
WHERE = f"import os, pathlib\npathlib.Path({FILE!r}).write_text(os.readlink('/proc/self/ns/mnt'))\n"
PLACE = "/opt/nccl-tests/build"
SOURCE = Path(__file__).parent / "standins" / "all_reduce_perf.c"
HOME = runtime.IN_GUESTS
BOOKS = ("base", "driver", "container", "mpi")
ONCE = ("bench", "cluster.toml", "--repeats", "1")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    runtime.make_runtime()
    with trained.cluster(tmp_path_factory.mktemp("container")) as made:
        settings(made, "openmpi-4")
        done = made.configure()
        assert done.status == 0, done.err
        made.shape()
        yield made


def settings(cluster: Cluster, mpi: str, **more: str) -> None:
    inside = {"container_python": f"{HOME}/venv/bin/python", "container_mpirun": f"{HOME}/{mpi}/bin/mpirun"}
    cluster.playbooks(*BOOKS, mesh_user="root", **(inside | more))


def bench(cluster: Cluster, *more: str) -> Ended:
    return cluster.shell.here(
        *ONCE,
        "--run-in",
        "container",
        "--steps",
        "12",
        "--batch",
        "8",
        "--image-size",
        "32",
        "--max-time",
        "500",
        "-o",
        "json",
        *more,
    )


def run_of(ended: Ended) -> dict[str, Any]:
    (run,) = trained.runs(ended)
    return run


def test_training_starts_in_the_container_of_each_node_and_the_record_says_so(cluster: Cluster) -> None:
    run = run_of(bench(cluster, "--results", "gloo"))
    assert run["configuration"]["options"]["in"] == "container"
    assert {each["verdict"] for each in run["proofs"]} == {"yes"}
    assert {"placement", "in_sync", "path"} <= {each["name"] for each in run["proofs"]}
    assert run["environment"]["container"] == f"{trained.SETTINGS['image']} sha256:lab-stand-in"
    assert run["lab"]


def test_the_container_sees_what_nccl_is_told_in_its_guest(cluster: Cluster) -> None:
    mounted = "grep -c -e ' /etc/nccl.conf ' -e ' /etc/vsml/nccl-topology.xml ' /proc/self/mountinfo"
    seen = cluster.shell.here("run", "--sudo", "--", f"docker exec vsml-worker {mounted}")
    assert seen.status == 0, seen.err
    assert seen.out.splitlines()[1] == "2"


# Without containers both are tried in the short rings, in test_bench.
@pytest.mark.parametrize("mpi", [pytest.param("openmpi-4", marks=pytest.mark.long), "openmpi-5"])
def test_mpirun_goes_from_container_to_container(cluster: Cluster, mpi: str) -> None:
    settings(cluster, mpi)
    run = run_of(bench(cluster, "--launcher", "mpirun", "--results", mpi))
    assert [each["node"] for each in run["placement"]] == ["node-1", "node-2"]


def test_every_rank_runs_in_its_nodes_container_and_not_in_the_guest(cluster: Cluster) -> None:
    cluster.shell.write("where.py", WHERE)
    run_of(bench(cluster, "--script", "where.py", "--results", "where"))
    same = f'test "$(cat {FILE})" = "$(docker exec vsml-worker readlink /proc/self/ns/mnt)"'
    other = f'test "$(cat {FILE})" != "$(readlink /proc/self/ns/mnt)"'
    ended = cluster.shell.here("run", "--sudo", "--", f"{same} && {other}")
    assert ended.status == 0, ended.out + ended.err


# A job of the user's: each rank tells its container, and stays until it may go.
JOB = "while [ ! -e /tmp/let-go ]; do sleep 0.5; done; readlink /proc/self/ns/mnt >where"


def job(cluster: Cluster, *words: str) -> Any:
    ended = cluster.shell.here("job", words[0], "-o", "json", *words[1:])
    assert ended.status == 0, ended.err
    return ended.document["data"]


def test_a_job_of_the_user_s_runs_in_the_containers_without_its_terminal(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    run_id = job(
        cluster, *("run", "--run-in", "container", "--detach", "--folder", str(tmp_path / "mine")), *("--", JOB)
    )["run_id"]
    assert [each["state"] for each in job(cluster, "list")["jobs"]] == ["running"]
    inside = "docker exec vsml-worker touch /tmp/let-go && docker exec vsml-worker readlink /proc/self/ns/mnt"
    seen = cluster.shell.here("run", "--sudo", "--", inside)
    assert seen.status == 0, seen.err
    ended = job(cluster, "logs", "--follow", run_id)
    assert (ended["state"], ended["status"]) == ("ended", 0)
    assert {each["name"]: each["verdict"] for each in ended["proofs"]}["placement"] == "yes"
    job(cluster, "fetch", run_id, "--into", str(tmp_path / "fetched"))
    for node in ("node-1", "node-2"):
        assert (tmp_path / "fetched" / node / "work" / "where").read_text().strip() in seen.out


def test_a_job_that_is_stopped_leaves_no_process_in_any_container(cluster: Cluster) -> None:
    run_id = job(cluster, "run", "--run-in", "container", "--detach", "--", "sleep 900")["run_id"]
    assert set(job(cluster, "stop", run_id, "--delete")["ended"]) == {"node-1", "node-2"}
    seen = cluster.shell.here("run", "--sudo", "--", f"grep -lzsx VSML_JOB_RUN={run_id} /proc/[0-9]*/environ; :")
    assert not [line for line in seen.out.splitlines() if line.startswith("/proc")]


def test_ctrl_c_leaves_no_process_in_any_container(cluster: Cluster) -> None:
    process = cluster.shell.start(
        *ONCE, "--run-in", "container", "--steps", "100000", "--max-time", "500", "--results", "cut"
    )
    try:
        await_ranks(cluster)
    finally:
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 130, err
    assert find_stale_processes(cluster) == []


def test_a_node_without_its_container_is_named_and_nothing_is_left(cluster: Cluster) -> None:
    assert cluster.shell.here("run", "--sudo", "--only", "node-2", "--", "docker rm -f vsml-worker").status == 0
    refused = bench(cluster, "--results", "without")
    assert refused.status != 0
    assert "node-2: container vsml-worker " in refused.err
    assert find_stale_processes(cluster) == []
    assert cluster.configure().status == 0


def test_links_are_measured_by_iperf3_and_the_record_says_that_rdma_is_not(cluster: Cluster) -> None:
    run = run_of(cluster.shell.here(*ONCE, "--workload", "link", "--results", "link", "-o", "json"))
    assert [(each["tool"], each["load"], each["sender"]) for each in run["link_results"]] == [
        ("iperf3", load, sender) for load in ("alone", "ring") for sender in ("node-1", "node-2")
    ]
    said = {each["target"]: each["message"] for each in run["diagnostics"] if each["code"] == "bench.not-measured"}
    assert set(said) == {"ib_write_bw", "ib_write_bw from GPU memory"}
    assert all(message.endswith(": node-1, node-2: no RDMA device") for message in said.values())
    asked = (*ONCE, "--workload", "link", "--transport", "roce", "--results", "roce")
    refused = cluster.shell.here(*asked)
    assert refused.status != 0
    assert " ib_write_bw: node-1, node-2: no RDMA device" in refused.err


def test_nccl_without_nccl_tests_is_told_with_the_command_that_builds_it(cluster: Cluster) -> None:
    refused = cluster.shell.here(
        "bench", "cluster.toml", "--run-in", "container", "--workload", "nccl", "--results", "nccl"
    )
    assert refused.status != 0
    assert "no all_reduce_perf of nccl-tests " in refused.err
    assert "make -C /opt/nccl-tests MPI=1" in refused.err


def test_a_program_in_place_of_nccl_tests_is_started_read_and_proven_as_far_as_it_can_be(
    cluster: Cluster, tmp_path: Path
) -> None:
    """The program is a stand-in that says so: MPI's all-reduce, in nccl-tests' table. It has no NCCL's log."""
    program = compiled(tmp_path)
    put = f"mkdir -p {PLACE} && base64 -d >{PLACE}/all_reduce_perf && chmod 755 {PLACE}/all_reduce_perf"
    text = base64.b64encode(program.read_bytes()).decode()
    assert cluster.shell.here("run", "--sudo", "--", f"echo {text} | {{ {put}; }}").status == 0
    wanted = ("--workload", "nccl", "--nccl-sizes", "1M:4M", "--nccl-iters", "3", "--results", "measured")
    run = run_of(bench(cluster, *wanted))
    assert [point["size_bytes"] for point in run["sweep"]] == [1 << 20, 2 << 20, 4 << 20]
    proofs = {each["name"]: each["verdict"] for each in run["proofs"]}
    assert (proofs["placement"], proofs["in_sync"], proofs["path"]) == ("yes", "yes", "unknown")
    assert [(each["node"], each["device"]) for each in run["placement"]] == [
        ("node-1", "GPU-lab-stand-in-0"),
        ("node-2", "GPU-lab-stand-in-0"),
    ]
    assert run["lab"]
    assert "nccl" not in run["environment"]["versions"]
    (path,) = (cluster.shell.folder / "measured").glob("*.log")
    assert "# stand-in " in path.read_text()
    ended = cluster.shell.here("bench", "report", "measured")
    assert "All-reduce: nccl, 2 nodes" in ended.out


def compiled(folder: Path) -> Path:
    """Return the stand-in, linked with the lab's MPI."""
    home = runtime.home() / "openmpi-4"
    command = [str(home / "bin" / "mpicc"), "-O1", "-o", str(folder / "all_reduce_perf"), str(SOURCE)]
    subprocess.run(command, check=True, env={**os.environ, "OPAL_PREFIX": str(home)})
    return folder / "all_reduce_perf"
