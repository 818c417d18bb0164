"""`vsml job` on two lab guests: programs that know nothing of vsml, started, lost, found again, stopped, fetched."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e import launched, trained
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.e2e.conftest import Ended
    from tests.e2e.trained import Cluster

pytestmark = trained.on_guests()
NODES = ("node-1", "node-2")
# By plain sockets, which a rank finds by what torchrun would tell it.
TALKS = """\
import os, pathlib, socket, sys, time
rank, at = int(os.environ["RANK"]), (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
if rank == 0:
    with socket.create_server(at) as server:
        other, _ = server.accept()
        other.sendall(b"hello")
        time.sleep(2)
else:
    while True:
        try:
            other = socket.create_connection(at)
            break
        except OSError:
            time.sleep(0.2)
    assert other.recv(5) == b"hello"
    time.sleep(2)
print(rank, os.environ["WORLD_SIZE"], sys.argv[1], flush=True)
pathlib.Path("out").mkdir(exist_ok=True)
pathlib.Path(f"out/rank-{rank}").write_text("made\\n")
"""
HOROVOD = """\
import horovod.tensorflow as hvd
import tensorflow as tf
hvd.init()
total = hvd.allreduce(tf.ones(4) * (hvd.rank() + 1), op=hvd.Sum)
assert total.numpy().tolist() == [3.0] * 4
print("has", total.numpy()[0], flush=True)
"""
FAILS = 'test "$RANK" = 0 || exit 7; sleep 600'
LASTS = "while [ ! -e /tmp/let-go ]; do sleep 0.5; done; echo whole"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with launched.cluster(tmp_path_factory.mktemp("job")) as made:
        program = made.shell.folder / "mine"
        program.mkdir()
        (program / "talks.py").write_text(TALKS)
        (program / "average.py").write_text(HOROVOD)
        yield made


def job(cluster: Cluster, *words: str) -> Ended:
    return cluster.shell.here("job", *words)


def data(ended: Ended) -> Any:
    assert ended.status == 0, ended.err
    return ended.document["data"]


def verdicts(ended: Ended) -> dict[str, str]:
    return {each["name"]: each["verdict"] for each in data(ended)["proofs"]}


def states(cluster: Cluster) -> dict[str, str]:
    return {each["run_id"]: each["state"] for each in data(job(cluster, "list", "-o", "json"))["jobs"]}


def offered_at_tab(cluster: Cluster) -> list[str]:
    """Return what a shell is offered after `vsml job stop`."""
    line = {"_VSML_COMPLETE": "complete_bash", "COMP_WORDS": "vsml job stop ", "COMP_CWORD": "3"}
    return cluster.shell.vsml(**line).out.split()


def marked(cluster: Cluster, run_id: str) -> list[str]:
    """Return the processes of a job on all nodes."""
    seen = launched.everywhere(cluster, f"grep -lzsx VSML_JOB_RUN={run_id} /proc/[0-9]*/environ; :")
    assert seen.status == 0, seen.err
    return [line for line in seen.out.splitlines() if line.startswith("/proc")]


def test_a_command_runs_once_on_each_node_and_what_it_made_is_fetched(cluster: Cluster, tmp_path: Path) -> None:
    ended = job(cluster, "run", "cluster.toml", "--folder", "mine", "--", "talks.py", "a  b")
    assert ended.status == 0, ended.err
    assert sorted(ended.out.splitlines()) == ["[0] 0 2 a  b", "[1] 1 2 a  b"]
    (run_id, state), *_ = states(cluster).items()
    assert state == "ended"
    assert verdicts(job(cluster, "logs", run_id, "-o", "json")) == {
        "placement": "yes",
        "in_sync": "unknown",
        "path": "yes",
    }
    assert marked(cluster, run_id) == []
    fetched = data(job(cluster, "fetch", "--into", str(tmp_path / "results"), "-o", "json"))
    assert {node: sorted(names) for node, names in fetched["files"].items()} == {
        "node-1": ["job.log", "work/out/rank-0"],
        "node-2": ["work/out/rank-1"],
    }
    assert (tmp_path / "results" / "node-2" / "work" / "out" / "rank-1").read_text() == "made\n"
    assert job(cluster, "stop", run_id, "--delete").status == 0
    assert run_id not in states(cluster)
    left = launched.everywhere(cluster, f"ls -d /var/tmp/vsml-bench/jobs/{run_id} 2>/dev/null; :")
    assert run_id not in left.out


def test_a_horovod_program_runs_under_horovodrun(cluster: Cluster) -> None:
    ended = job(cluster, "run", "--launcher", "horovodrun", "--folder", "mine", "--", "python", "average.py")
    assert ended.status == 0, ended.err
    shown = [line for line in ended.out.splitlines() if "has" in line]
    assert sorted(shown) == ["[0] has 3.0", "[1] has 3.0"]
    assert verdicts(job(cluster, "logs", "-o", "json"))["placement"] == "yes"


def test_a_program_runs_under_mpirun(cluster: Cluster) -> None:
    ended = job(cluster, "run", "--launcher", "mpirun", "--", "echo on $(hostname)")
    assert ended.status == 0, ended.err
    assert sorted(ended.out.splitlines()) == ["[0] on node-1", "[1] on node-2"]


def test_a_rank_that_fails_ends_the_job_with_its_status(cluster: Cluster) -> None:
    ended = job(cluster, "run", "-o", "json", "--", FAILS)
    assert (ended.status, ended.document["errors"][0]["code"], ended.document["data"]["status"]) == (6, "job.failed", 7)
    assert marked(cluster, ended.document["data"]["run_id"]) == []


def test_one_of_two_jobs_is_stopped_and_a_benchmark_leaves_the_other_alone(cluster: Cluster) -> None:
    first, second = (data(job(cluster, "run", "--detach", "-o", "json", "--", "sleep 900"))["run_id"] for _ in "ab")
    assert offered_at_tab(cluster)[:2] == [second, first]
    assert job(cluster, "stop", "-o", "json").document["errors"][0]["code"] == "job.several"
    assert data(job(cluster, "stop", first, "-o", "json"))["ended"].keys() == set(NODES)
    assert marked(cluster, first) == []
    assert len(marked(cluster, second)) >= len(NODES)
    assert (states(cluster)[first], states(cluster)[second]) == ("stopped", "running")
    refused = launched.bench(cluster, "--results", "refused", "-o", "json")
    assert refused.document["errors"][0]["code"] == "bench.foreign-job"
    assert second in refused.err
    assert len(marked(cluster, second)) >= len(NODES)
    assert job(cluster, "stop", "--delete").status == 0
    assert marked(cluster, second) == []
    assert second not in offered_at_tab(cluster)


def test_a_job_is_stopped_on_a_node_that_left_the_file(cluster: Cluster) -> None:
    run_id = data(job(cluster, "run", "--detach", "-o", "json", "--", "sleep 900"))["run_id"]
    on_each = f"grep -lzsqx VSML_JOB_RUN={run_id} /proc/[0-9]*/environ"
    until(lambda: launched.everywhere(cluster, on_each).status == 0, "the job has not begun on each node")
    written = (cluster.shell.folder / "cluster.toml").read_text()
    (cluster.shell.folder / "smaller.toml").write_text(written.replace("node-[1-2]", "node-1"))
    stopped = data(job(cluster, "stop", "-f", "smaller.toml", run_id, "-o", "json"))
    assert (stopped["ended"].keys(), stopped["not_stopped"]) == (set(NODES), {})
    assert stopped["ended"]["node-2"]
    assert marked(cluster, run_id) == []


def test_a_job_goes_on_without_its_terminal_and_says_what_became_of_it(cluster: Cluster) -> None:
    process = cluster.shell.start("job", "run", "--", LASTS)
    until(lambda: "running" in states(cluster).values(), "no job runs")
    process.send_signal(signal.SIGHUP)
    process.communicate(timeout=60)
    (run_id,) = [name for name, state in states(cluster).items() if state == "running"]
    assert launched.everywhere(cluster, "touch /tmp/let-go").status == 0
    ended = job(cluster, "logs", "--follow", run_id)
    assert (ended.status, sorted(ended.out.splitlines())) == (0, ["[0] whole", "[1] whole"]), ended.err


def test_a_ctrl_c_stops_a_job(cluster: Cluster) -> None:
    process = cluster.shell.start("job", "run", "--", "sleep 900")
    until(lambda: "running" in states(cluster).values(), "no job runs")
    (run_id,) = [name for name, state in states(cluster).items() if state == "running"]
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=120)
    assert (states(cluster)[run_id], marked(cluster, run_id)) == ("stopped", [])
