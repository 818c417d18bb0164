"""`vsml bench selftest`: the tool against links whose rate is known."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypedDict

import typer

from vsphere_ml.cli.options import command
from vsphere_ml.cli.terminal import Answer, Terminal

if TYPE_CHECKING:
    from vsphere_ml.bench.launch.matrix import BenchSpec
    from vsphere_ml.bench.model.record import Run, Workload
    from vsphere_ml.cli.lab.lab_cluster import LabCluster
    from vsphere_ml.core.diagnostics import Diagnostic

LAB = "selftest"
SLOWER = 4  # times, the slowed node's links
SWEPT = (2, 3, 4)  # numbers of nodes
# The bound is a ring's, and MPICH of its own does not take one on three nodes. Set to it, and initialized for several
# threads, MPICH 5.0.2 never leaves the start of Horovod 0.28.1, whose own thread is the only one to call it here.
# UCX moves a large message over TCP by one PUT, with which its makers found collectives not good enough
# (https://github.com/openucx/ucx/pull/4836). On busy lab guests two ranks that exchange 4 MiB went one after the other.
RING = {
    "MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM": "ring",
    "HOROVOD_MPI_THREADS_DISABLE": "1",
    "UCX_TCP_PUT_ENABLE": "n",
}


class _SelftestData(TypedDict):
    """The checks on links of a known rate, and the record of their launches."""

    record: Path
    rate_bits_per_s: float
    checks: tuple[Diagnostic, ...]


@command
def selftest(
    terminal: Terminal,
    rate: Annotated[
        str,
        typer.Option(
            help="Rate of the links, such as 100mbit. Guests share this machine's cores, so high rates test nothing."
        ),
    ] = "50mbit",
    launches: Annotated[
        int, typer.Option(min=1, help="On each number of nodes. More of them make up for what else runs here.")
    ] = 2,
    into: Annotated[Path | None, typer.Option("--results", metavar="FOLDER", help="Results folder.")] = None,
) -> Answer[_SelftestData]:
    """Check vsml itself on this machine, before it is trusted on GPUs (needs root on Linux, and no vCenter).

    Four lab guests, links of a known rate between them: all-reduces of MPICH and Horovod on two, three and four nodes
    must keep the bound and come near it, and a node whose links are slowed must be named. How often it
    launches does not depend on what it finds. The first time Horovod is built, which takes some minutes. Nothing in it
    tells how NCCL, GPUs or RDMA do.

    Example: `sudo vsml bench selftest`
    """
    from vsphere_ml.bench.gate import selftest as testing
    from vsphere_ml.bench.model.record import Workload
    from vsphere_ml.bench.records import store
    from vsphere_ml.cli.lab.lab_cluster import NODES, lab_cluster
    from vsphere_ml.cli.views.bench import selftest as view
    from vsphere_ml.lab.guests import shape

    bits_per_s, slow = shape.bits_per_s(rate), f"node-{NODES}"
    record = into or Path("bench") / f"selftest-{datetime.now(UTC):%Y-%m-%dT%H%M%S}"
    store.check_writable(record)
    slower = f"{round(bits_per_s / SLOWER / 1e3)}kbit"
    terminal.say(
        f"1/4 {NODES} lab guests, joined by links of {rate}; the steps after it take {_duration(bits_per_s, launches)}"
    )
    with lab_cluster(LAB, terminal) as cluster:
        cluster.shape(rate)
        swept = _swept(cluster, record, bits_per_s, launches)
        terminal.say(f"3/4 the links, those of {slow} slowed to {slower}: {_round_minutes(testing.links_s(NODES))}")
        cluster.shape(slower, slow)
        slowed = cluster.bench(_bench_spec(Workload.LINK, (NODES,)), record / "slowed")
    terminal.say("4/4 checks")
    checks = testing.checks(swept, slowed, slow, bits_per_s)
    error = testing.failure(checks)
    return Answer(
        text=view.text(checks, record),
        data={"record": record, "rate_bits_per_s": bits_per_s, "checks": checks},
        status=error.status if error else 0,
        errors=(error,) if error else (),
    )


def _duration(bits_per_s: float, launches: int) -> str:
    from vsphere_ml.bench.gate import selftest as testing
    from vsphere_ml.cli.lab.lab_cluster import NODES

    return _round_minutes(launches * testing.sweeps_s(SWEPT, bits_per_s) + testing.links_s(NODES))


def _round_minutes(seconds: float) -> str:
    return f"about {_minutes(seconds)}"


def _minutes(seconds: float) -> str:
    from vsphere_ml.core.order import count

    return count(max(1, math.ceil(seconds / 60)), "minute")


def _swept(cluster: LabCluster, record: Path, bits_per_s: float, launches: int) -> tuple[Run, ...]:
    """Return that many launches on each number of nodes."""
    from vsphere_ml.bench.gate import selftest as testing
    from vsphere_ml.bench.model.record import Workload

    nodes, took = ", ".join(map(str, SWEPT)), launches * testing.sweeps_s(SWEPT, bits_per_s)
    cluster.terminal.say(f"2/4 all-reduces on {nodes} nodes: {_round_minutes(took)}")
    return cluster.bench(_bench_spec(Workload.ALLREDUCE, SWEPT, launches), record)


def _bench_spec(workload: Workload, nodes: tuple[int, ...], launches: int = 1) -> BenchSpec:
    from vsphere_ml.bench.gate import selftest as testing
    from vsphere_ml.bench.launch.matrix import BenchSpec
    from vsphere_ml.bench.model.launcher_names import Backend, LauncherName
    from vsphere_ml.bench.model.record import Workload

    return BenchSpec(
        workloads=(workload,),
        nodes=nodes,
        repeats=launches,
        launcher=LauncherName.MPIRUN,
        backend=Backend.MPI,
        variables=RING,
        options={Workload.ALLREDUCE: {"sizes": ",".join(map(str, testing.SIZES)), "repeats": str(testing.REPEATS)}},
    )
