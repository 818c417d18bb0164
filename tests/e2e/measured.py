"""What is measured on lab guests with MPICH: settings, launches, and what is said of records.

Rates are such that the link sets the pace and not the two CPUs that all guests may share. Where only a bound is meant
the best repeat counts: what else runs on the machine slows a repeat, and makes none faster.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tests.e2e import trained
from tests.e2e.conftest import QUAD, Shell, clean_environment
from vsphere_ml.lab import mpich, runtime, server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.e2e.conftest import Ended
    from tests.e2e.trained import Cluster

PAIR = ("--only", "node-1", "--only", "node-2")
MPICH = {
    "runtime_path": f"{runtime.IN_GUESTS}/{mpich.VENV}",
    "mpirun": f"{runtime.IN_GUESTS}/{mpich.FOLDER}/bin/mpirun",
}
OPEN_MPI_5 = {"runtime_path": f"{runtime.IN_GUESTS}/venv", "mpirun": f"{runtime.IN_GUESTS}/openmpi-5/bin/mpirun"}
ONCE = ("--repeats", "1")
ALLREDUCE = ("--workload", "allreduce", "--launcher", "mpirun", "--max-time", "900")
BLAMES = frozenset({"bench.slow-link", "bench.oversubscribed"})
SWEEP = (*ONCE, *ALLREDUCE)


@contextmanager
def cluster(folder: Path, nodes: int = 3) -> Iterator[Cluster]:
    """Run a cluster whose guests are ready for MPICH."""
    mpich.make_mpich()
    with trained.cluster(folder) as made:
        settings(made, MPICH, nodes)
        built = made.shell.here("provision", "--yes")
        assert built.status == 0, built.err
        made.shape()
        yield made


# The lab's default site with two more ports on each host, beside those that it has.
_MORE_PORTS = {
    "0000:3d:00.0": "0000:3e:00.0",
    "0000:b5:00.0": "0000:b6:00.0",
    "vmnic4": "vmnic6",
    "vmnic5": "vmnic7",
    "vmrdma0": "vmrdma2",
    "vmrdma1": "vmrdma3",
}


def _with_more_ports(topology: Path) -> str:
    text = topology.read_text()
    for port in re.findall(r"\[\[model\.nic\]\]\n(?:.+\n)+", text):
        more = port
        for old, new in _MORE_PORTS.items():
            more = more.replace(old, new)
        text = text.replace(port, f"{port}\n{more}")
    return text


@contextmanager
def fabric(folder: Path, nodes: int, rails: int = 1) -> Iterator[Cluster]:
    """Run guests with nothing but their first boot, whose links can be measured."""
    shell = Shell(folder, clean_environment(folder))
    text = QUAD.replace("node-[01-04]", f"node-[1-{nodes}]").replace(
        'port_group = "roce" }', f'port_group = "roce", count = {rails} }}'
    )
    text = text.replace('name = "train"', 'name = "train"\nspread = "pack"', 1)
    shell.write("cluster.toml", f'{text}[guest]\nplaybooks = ["base"]\n')
    topology = folder / "rails.toml"
    topology.write_text(_with_more_ports(server.topology_file(server.DEFAULT_TOPOLOGY)))
    with trained.lab_with_guests(shell, str(topology)) as lab:
        built = shell.here("provision", "--yes")
        if built.status:  # of eight guests that boot at once one may break off; the same command goes on
            built = shell.here("provision", "--yes")
        assert built.status == 0, built.err
        tool = shell.here("run", "--sudo", "--", "sh", "-c", "apt-get update && apt-get install -y iperf3")
        assert tool.status == 0, tool.out + tool.err
        yield trained.Cluster(shell, lab)


def settings(cluster: Cluster, values: dict[str, str], nodes: int = 3) -> None:
    cluster.playbooks("base", "mpi", mesh_user="root", **values)
    file = cluster.shell.folder / "cluster.toml"
    file.write_text(file.read_text().replace("node-[1-2]", f"node-[1-{nodes}]"))


def bench(shell: Shell, *more: str) -> Ended:
    return shell.here("bench", *more, "-o", "json")


def told(cluster: Cluster, *command: str) -> Any:
    ended = cluster.shell.here("bench", *command, "-o", "json")
    assert ended.status == 0, ended.err
    return ended.document["data"]


def causes(cluster: Cluster, record: str, code: str) -> list[str]:
    return [each["target"] for each in told(cluster, "explain", record)["diagnostics"] if each["code"] == code]


def blamed_links(cluster: Cluster, record: str, *more: str) -> list[tuple[str, str]]:
    """Return what `explain` says of the network after a launch that measures the links alone."""
    trained.runs(bench(cluster.shell, *ONCE, "--workload", "link", *more, "--results", record))
    diagnostics = told(cluster, "explain", record)["diagnostics"]
    return [(each["code"], each["target"]) for each in diagnostics if each["code"] in BLAMES]
