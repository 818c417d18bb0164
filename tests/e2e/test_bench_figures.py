"""What is said of real runs on lab guests: a slower link is slower, the same twice is not, the straggler is named."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e import trained
from tests.integration.guests import needed
from vsphere_ml.lab import runtime

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.trained import Cluster

LACKING = runtime.lacking()
pytestmark = [
    pytest.mark.e2e,
    pytest.mark.lab,
    needed,
    pytest.mark.skipif(LACKING is not None, reason=f"no Horovod for lab guests: {LACKING}"),
    pytest.mark.timeout(1500),  # the runtime is built the first time
]
PAIR = ("--only", "node-1", "--only", "node-2")
# At these rates the link sets the pace, and not the CPUs that all guests share: 8 MiB take over half a second.
USUAL, TENTH_LESS = "100mbit", "90mbit"
SWEEP = ("--workload", "allreduce", "--sizes", "8388608", "--sweeps", "5", "--limit", "400")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    runtime.made()
    with trained.cluster(tmp_path_factory.mktemp("figures")) as made:
        home = runtime.IN_GUESTS
        made.playbooks(
            "base", "mpi", runtime_path=f"{home}/venv", mpirun=f"{home}/openmpi-4/bin/mpirun", mesh_user="root"
        )
        file = made.shell.folder / "cluster.toml"
        file.write_text(file.read_text().replace("node-[1-2]", "node-[1-3]"))
        built = made.shell.vsml("provision", "--yes", "--skip-guests")
        assert built.status == 0, built.err
        done = made.configure()
        assert done.status == 0, done.err
        yield made


def bench(cluster: Cluster, *more: str) -> None:
    ended = cluster.shell.start("bench", "cluster.toml", *more)
    _, err = ended.communicate(timeout=1200)
    assert ended.returncode == 0, err


def shape(cluster: Cluster, rate: str, *more: str) -> None:
    ended = cluster.shell.vsml("lab", "shape", "--rate", rate, *more)
    assert ended.status == 0, ended.err


def told(cluster: Cluster, *command: str) -> Any:
    ended = cluster.shell.vsml("bench", *command, "-o", "json")
    assert ended.status == 0, ended.err
    return ended.document["data"]


def causes(cluster: Cluster, record: str, code: str) -> list[str]:
    return [each["target"] for each in told(cluster, "explain", record)["remarks"] if each["code"] == code]


def test_a_tenth_less_is_slower_and_the_same_again_is_not(cluster: Cluster) -> None:
    for record, rate in (("usual", USUAL), ("again", USUAL), ("less", TENTH_LESS)):
        shape(cluster, rate)
        bench(cluster, *SWEEP, *PAIR, "--repeats", "3", "--into", record)
    shape(cluster, "none")
    (row,) = told(cluster, "compare", "usual", "less")["rows"]
    assert (row["answer"], round(row["ratio"]["value"], 1)) == ("slower", 0.9)
    (row,) = told(cluster, "compare", "usual", "again")["rows"]
    assert row["answer"] in {"no difference shown", "too noisy"}
    assert cluster.shell.vsml("bench", "gate", "less", "--baseline", "usual").status == 6


def test_a_slow_link_among_three_nodes_is_found(cluster: Cluster) -> None:
    shape(cluster, "400mbit")
    shape(cluster, "40mbit", "node-3")
    bench(cluster, *SWEEP, "--into", "slow-link")
    shape(cluster, "none")
    blamed = causes(cluster, "slow-link", "bench.slow-link")
    assert blamed
    assert all("node-3" in each for each in blamed)


def test_a_guest_with_a_part_of_a_cpu_is_the_straggler(cluster: Cluster) -> None:
    """Each guest has a CPU of the machine for its own, and the second shares its own with a dozen that only count."""
    cpus = sorted(os.sched_getaffinity(0))
    for number, node in enumerate(("node-1", "node-2")):
        mine = f"for each in 1 $(pgrep -x sshd); do taskset -acp {cpus[number % len(cpus)]} $each || :; done"
        assert cluster.shell.vsml("run", "--only", node, "--", mine).status == 0
    busy = "for each in $(seq 12); do setsid sh -c 'while :; do :; done' </dev/null >/dev/null 2>&1 & done"
    try:
        assert cluster.shell.vsml("run", "--only", "node-2", "--", busy).status == 0
        bench(cluster, "--steps", "25", "--limit", "400", *PAIR, "--into", "straggler")
    finally:
        cluster.shell.vsml("run", "--only", "node-2", "--", "pkill -f '[w]hile :'")
    assert causes(cluster, "straggler", "bench.straggler") == ["node-2"]
