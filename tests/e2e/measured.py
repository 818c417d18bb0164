"""What is measured on lab guests with MPICH: settings, launches, and what is said of records.

Rates are such that the link sets the pace and not the two CPUs that all guests may share. Where only a bound is meant
the best repeat counts: what else runs on the machine slows a repeat, and makes none faster.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tests.e2e import trained
from vsphere_ml.lab import mpich, runtime

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.e2e.conftest import Ended, Shell
    from tests.e2e.trained import Cluster

PAIR = ("--only", "node-1", "--only", "node-2")
MPICH = {
    "runtime_path": f"{runtime.IN_GUESTS}/{mpich.VENV}",
    "mpirun": f"{runtime.IN_GUESTS}/{mpich.FOLDER}/bin/mpirun",
}
OPEN_MPI_5 = {"runtime_path": f"{runtime.IN_GUESTS}/venv", "mpirun": f"{runtime.IN_GUESTS}/openmpi-5/bin/mpirun"}
ONCE = ("--repeats", "1")
ALLREDUCE = ("--workload", "allreduce", "--launcher", "mpirun", "--limit", "900")
SWEEP = (*ONCE, *ALLREDUCE)


@contextmanager
def cluster(folder: Path, nodes: int = 3) -> Iterator[Cluster]:
    """Run a cluster whose guests are ready for MPICH."""
    mpich.make_mpich()
    with trained.cluster(folder) as made:
        settings(made, MPICH, nodes)
        built = made.shell.here("provision", "--yes")
        assert built.status == 0, built.err
        yield made


def settings(cluster: Cluster, values: dict[str, str], nodes: int = 3) -> None:
    cluster.playbooks("base", "mpi", mesh_user="root", **values)
    file = cluster.shell.folder / "cluster.toml"
    file.write_text(file.read_text().replace("node-[1-2]", f"node-[1-{nodes}]"))


def bench(shell: Shell, *more: str) -> Ended:
    return shell.here("bench", *more, "-o", "json")


def shape(cluster: Cluster, rate: str, *more: str) -> None:
    ended = cluster.shell.here("lab", "shape", "--rate", rate, *more)
    assert ended.status == 0, ended.err


def told(cluster: Cluster, *command: str) -> Any:
    ended = cluster.shell.here("bench", *command, "-o", "json")
    assert ended.status == 0, ended.err
    return ended.document["data"]


def causes(cluster: Cluster, record: str, code: str) -> list[str]:
    return [each["target"] for each in told(cluster, "explain", record)["remarks"] if each["code"] == code]
