"""What is said of launches on lab guests when something is wrong: a slow link, a straggler, misplaced ranks."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING

import pytest

from tests.e2e import measured, trained
from tests.e2e.conftest import DEADLINE_S, QUAD
from tests.e2e.launched import RANK, await_ranks
from tests.e2e.measured import MPICH, ONCE, OPEN_MPI_5, PAIR, SWEEP, bench, causes, settings
from vsphere_ml.lab import runtime

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.trained import Cluster

pytestmark = trained.on_guests()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with measured.cluster(tmp_path_factory.mktemp("figures")) as made:
        yield made


def test_a_slow_link_among_three_nodes_is_found(cluster: Cluster) -> None:
    settings(cluster, MPICH)
    cluster.shape("200mbit")
    cluster.shape("50mbit", "node-3")
    trained.runs(bench(cluster.shell, *SWEEP, "--sizes", "4194304", "--iters", "3", "--results", "slow-link"))
    cluster.shape()
    blamed = causes(cluster, "slow-link", "bench.slow-link")
    assert blamed
    assert all("node-3" in each for each in blamed)


# Stops what trains again and again from its first step on until it ends, and not the one that waits for it. Others that
# want the CPU would not do: where much else runs, the kernel moves it about, and all guests have equally little.
_HELD_UP = """\
import glob, os, signal, subprocess, time
def ran(*options):
    return subprocess.run(["pgrep", *options, "-f", "[t]rain.py"], capture_output=True).stdout.split()
def told():
    return open(max(glob.glob("/var/tmp/vsml-bench/*/rank-1.jsonl"), key=os.path.getmtime, default="/dev/null")).read()
while len(ran()) < 2 or '"step"' not in told():
    time.sleep(0.3)
program = int(ran("-n")[0])
try:
    while True:
        for what, seconds in ((signal.SIGSTOP, 0.06), (signal.SIGCONT, 0.02)):
            os.kill(program, what)
            time.sleep(seconds)
except ProcessLookupError:
    pass
"""


def test_a_guest_that_is_held_up_is_the_straggler(cluster: Cluster) -> None:
    settings(cluster, OPEN_MPI_5)
    hold_up = f"setsid python3 -c {shlex.quote(_HELD_UP)} held-up </dev/null >/dev/null 2>&1 &"
    try:
        assert cluster.shell.here("run", "--sudo", "--only", "node-2", "--", hold_up).status == 0
        trained.runs(
            bench(
                cluster.shell,
                *ONCE,
                "--steps",
                "40",
                "--batch",
                "512",  # computed for longer than the guest runs between two stops, so that each local step meets one
                "--image-size",
                "32",
                "--max-time",
                "900",
                *PAIR,
                "--results",
                "straggler",
            )
        )
    finally:
        cluster.shell.here("run", "--sudo", "--only", "node-2", "--", "pkill -f '[h]eld-up'")
    assert causes(cluster, "straggler", "bench.straggler") == ["node-2"]


# What a host list that Open MPI 5 does not read comes to: the real mpirun, and every rank on the first node.
_TRAP = """\
real={real} && mkdir -p /opt/trap/bin
for each in $real/* $real/bin/*; do
    [ "$each" = $real/bin ] || ln -sf "$each" "/opt/trap/${{each#$real/}}"
done
rm /opt/trap/bin/mpirun
cat >/opt/trap/bin/mpirun <<'end'
#!/bin/sh
if [ "$1 $3" = "-np --hostfile" ]; then np=$2; shift 4; set -- -np "$np" "$@"; fi
exec {real}/bin/mpirun "$@"
end
chmod +x /opt/trap/bin/mpirun
"""


def test_open_mpi_5_with_every_rank_on_one_node_is_caught(cluster: Cluster) -> None:
    trap = shlex.join(["sh", "-c", _TRAP.format(real=f"{runtime.IN_GUESTS}/openmpi-5")])
    made = cluster.shell.here("run", "--sudo", *PAIR, "--", trap)
    assert made.status == 0, made.out + made.err
    settings(cluster, OPEN_MPI_5 | {"mpirun": "/opt/trap/bin/mpirun"})
    ended = bench(cluster.shell, *SWEEP, "--sizes", "4194304", "--iters", "3", *PAIR, "--results", "trap")
    assert ended.status == 8, ended.err
    (run,) = ended.document["data"]["runs"]
    assert (run["outcome"], run["sweep"]) == ("invalid", [])
    assert [each["node"] for each in run["placement"]] == ["node-1", "node-1"]
    assert "node-1: 2 ranks, 1 asked " in ended.err


def test_two_vms_on_one_host_are_said_to_be_no_inter_host_figure(cluster: Cluster) -> None:
    settings(cluster, MPICH)
    text = (cluster.shell.folder / "cluster.toml").read_text()
    packed = text.replace(QUAD[: QUAD.index("\n\n")], '[cluster]\nname = "packed"\nspread = "pack"')
    cluster.shell.write("packed.toml", packed.replace("node-[1-3]", "packed-[1-2]"))
    built = cluster.shell.here("provision", "packed.toml", "--yes")
    assert built.status == 0, built.err
    (run,) = trained.runs(
        bench(cluster.shell, "packed.toml", *SWEEP, "--sizes", "4194304", "--iters", "3", "--results", "packed")
    )
    assert len({each["host"] for each in run["placement"]}) == 1
    assert [each["code"] for each in run["diagnostics"] if each["code"] == "bench.one-host"] == ["bench.one-host"]
    assert causes(cluster, "packed", "bench.one-host")


def test_a_worker_killed_over_mpich_is_a_clear_failure_and_leaves_nothing(cluster: Cluster) -> None:
    settings(cluster, MPICH)
    train = (*ONCE, "--launcher", "mpirun", "--steps", "100000", *PAIR, "--results", "killed", "-o", "json")
    process = cluster.shell.start("bench", *train)
    await_ranks(cluster, *PAIR)
    assert cluster.shell.here("run", "--sudo", "--only", "node-2", "--", f"pkill -9 -f '{RANK}'").status == 0
    out, err = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 6, err
    (run,) = json.loads(out)["data"]["runs"]
    assert (run["outcome"], run["steps"]) == ("failed", None)
    assert "mpirun on node-1 " in run["reason"]
    left = cluster.shell.here(
        "run", "--sudo", *PAIR, "--", "grep -lz ^VSML_BENCH_RUN= /proc/[0-9]*/environ 2>/dev/null || :"
    )
    assert left.status == 0
    assert "/proc" not in left.out
