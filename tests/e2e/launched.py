"""Launches of `vsml bench` on two lab guests, and what is seen of them there."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.e2e import trained
from vsphere_ml.lab import runtime

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from pathlib import Path

    from tests.e2e.conftest import Ended
    from tests.e2e.trained import Cluster

LAUNCH_S = 1200
# Little to compute, since all tests share the CPUs.
TRAIN = ("--steps", "15", "--batch", "8", "--image-size", "32")
SMALL = ("--repeats", "1", *TRAIN, "--sizes", "1048576,4194304", "--iters", "3", "--max-time", "900")


@contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    """Run a cluster whose guests are ready for Open MPI 4."""
    runtime.make_runtime()
    with trained.cluster(folder) as made:
        settings(made, "openmpi-4")
        done = made.configure()
        assert done.status == 0, done.err
        made.shape()
        yield made


def settings(cluster: Cluster, mpi: str) -> None:
    home = runtime.IN_GUESTS
    cluster.playbooks("base", "mpi", runtime_path=f"{home}/venv", mpirun=f"{home}/{mpi}/bin/mpirun", mesh_user="root")


def bench(cluster: Cluster, *more: str, **env: str) -> Ended:
    return cluster.shell.here("bench", "cluster.toml", *SMALL, *more, **env)


def start(cluster: Cluster, *more: str, **env: str) -> subprocess.Popen[str]:
    return cluster.shell.start("bench", "cluster.toml", *SMALL, *more, **env)


def everywhere(cluster: Cluster, command: str) -> Ended:
    return cluster.shell.here("run", "--sudo", "--", command)


# What a rank's command line looks like to pgrep and pkill. The file's name alone stands in commands that bring it, too.
RANK = "^[^ ]*python[0-9.]* [^ ]*train[.]py"


def await_ranks(cluster: Cluster, *only: str) -> None:
    """Return once each guest runs a rank. The guests wait: the command again and again would take ranks the CPU."""
    wait = f"timeout {LAUNCH_S} sh -c 'until pgrep -f \"{RANK}\"; do sleep 0.3; done'"
    ended = cluster.shell.here("run", *only, "--", wait)
    assert ended.status == 0, ended.err


def find_stale_processes(cluster: Cluster) -> list[str]:
    seen = everywhere(cluster, "grep -lz ^VSML_BENCH_RUN= /proc/[0-9]*/environ 2>/dev/null || :")
    assert seen.status == 0, seen.err
    return [line for line in seen.out.splitlines() if line.startswith("/proc")]
