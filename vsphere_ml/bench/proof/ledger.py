"""Bytes that guests sent during an exchange, against those that its algorithm must send: what it did needs no log."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from vsphere_ml.bench.model.launcher_names import Backend
from vsphere_ml.bench.model.record import TrafficCount, TrafficVerdict, Workload
from vsphere_ml.bench.network.bus_bandwidth import bus_factor
from vsphere_ml.bench.network.frames import HEADERS
from vsphere_ml.bench.network.regimes import Regime, shape_of
from vsphere_ml.core.diagnostics import Diagnostic

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vsphere_ml.bench.model.job import Job
    from vsphere_ml.bench.model.rank_log import RankLog

SMALLEST = 1 << 20  # bytes; below, what Horovod's controller says to other ranks is no small part
TOLERANCE = 0.02  # of what is expected
SILENT = 0.05  # of what is expected: what else the guest says on its network
MPICH_RING = ("MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM", "ring")

_HINT = "`traffic` in the record has the bytes; look at --env, at the script and at the launcher's hosts"
DIAGNOSES = {
    TrafficVerdict.NOTHING: Diagnostic(
        code="bench.traffic-nothing",
        target="",
        message="sent {ratio:.0%} of what the exchange must: nothing was exchanged",
        hint=_HINT,
    ),
    TrafficVerdict.OTHER_INTERFACE: Diagnostic(
        code="bench.traffic-other-interface",
        target="",
        message="sent what the exchange must by {interface}, not by the chosen interface",
        hint=_HINT,
    ),
    TrafficVerdict.TWICE: Diagnostic(
        code="bench.traffic-twice",
        target="",
        message="sent {ratio:.2f} times what the exchange must: it was averaged twice",
        hint=_HINT,
    ),
    TrafficVerdict.HALF: Diagnostic(
        code="bench.traffic-half",
        target="",
        message="sent half of what the exchange must: its values were compressed",
        hint=_HINT,
    ),
    TrafficVerdict.FEWER_RANKS: Diagnostic(
        code="bench.traffic-fewer-ranks",
        target="",
        message="sent {ratio:.2f} of what an all-reduce of all ranks must, as one of fewer ranks does",
        hint=_HINT,
    ),
}


def is_ring(job: Job) -> bool:
    """Return whether this job's all-reduces are rings over TCP with a rank a node, whose bytes are known.

    Gloo's default is a ring (gloo/allreduce.cc: UNSPECIFIED is RING); MPICH takes one where it is set to.
    """
    asked = job.configuration
    name, value = MPICH_RING
    ring = asked.backend == Backend.GLOO or (asked.backend == Backend.MPI and job.variables.get(name) == value)
    over_tcp = not asked.transport.spec.rdma and asked.workload is Workload.ALLREDUCE
    return ring and over_tcp and asked.ranks == asked.nodes > 1


def count(job: Job, logs: Sequence[RankLog]) -> tuple[TrafficCount, ...]:
    """Return what each node sent for each message size of 1 MiB and more; empty where nobody knows what it must."""
    asked = job.configuration
    if asked.workload is Workload.REGIMES:
        return _count_regime(job, logs)
    if not is_ring(job) or any(_is_by_nccl(each) for each in logs):
        return ()
    return tuple(
        _count(each, size, bus_factor(asked.ranks) * size, asked.ranks)
        for each in logs
        for size in each.sent_by_size
        if size >= SMALLEST and each.interface.get("name") in each.sent_by_size[size][1]
    )


def _is_by_nccl(log: RankLog) -> bool:
    """Return whether NCCL may have carried the rank's all-reduces, by a tree as well as by a ring.

    A leaf of a tree over four nodes sends two thirds of what a ring must, as in a ring of two.
    """
    return str(log.model.get("device", "")).startswith("GPU") and "nccl" in log.model.get("built", ())


def _count_regime(job: Job, logs: Sequence[RankLog]) -> tuple[TrafficCount, ...]:
    """Return what each node sent in a training by a regime: the first rank of each has read its node's counters."""
    asked = job.configuration
    spec = Regime(asked.options["regime"]).spec
    nodes = {node.name: number for number, node in enumerate(job.nodes)}
    return tuple(
        _count(each, size, spec.sent_bytes(shape, nodes[each.node]), asked.ranks)
        for each in logs
        if each.local_rank == 0
        for size, (_, counters) in each.sent_by_size.items()
        for shape in (shape_of(asked, size),)
        if each.interface.get("name") in counters
    )


def _count(log: RankLog, size: int, each_must: float, ranks: int) -> TrafficCount:
    """`each_must` is the payload of one exchange."""
    exchanges, counters = log.sent_by_size[size]
    asked = str(log.interface["name"])
    must = (each_must or size) * exchanges
    ratios = {name: _payload(*counted) / must for name, counted in counters.items()}
    used = asked if ratios[asked] > SILENT else max(ratios, key=ratios.__getitem__)
    verdict = TrafficVerdict.OTHER_INTERFACE if used != asked and ratios[used] > SILENT else judge(ratios[asked], ranks)
    if not each_must:  # all is in one machine
        verdict = TrafficVerdict.EXPECTED if ratios[used] <= SILENT else TrafficVerdict.UNKNOWN
    used = used if verdict is TrafficVerdict.OTHER_INTERFACE else asked
    counted, packets = counters[used]
    return TrafficCount(
        node=log.node,
        interface=used,
        size_bytes=size,
        exchanges=exchanges,
        expected_bytes=round(each_must * exchanges) + packets * HEADERS,
        counted_bytes=counted,
        ratio=ratios[used],
        verdict=verdict,
    )


def _payload(counted: int, packets: int) -> int:
    """Return what is left without headers; an acknowledgement alone has nothing else.

    Where the kernel leaves segmentation to the adapter, many segments are counted as one packet with one header; then
    as many headers are left out as were counted.
    """
    return max(0, counted - packets * HEADERS)


def judge(ratio: float, ranks: int) -> TrafficVerdict:
    """Return what a node's payload says, as a share of what a ring over all ranks must send."""
    if ratio < SILENT:
        return TrafficVerdict.NOTHING
    for at, verdict in ((1.0, TrafficVerdict.EXPECTED), (2.0, TrafficVerdict.TWICE), (0.5, TrafficVerdict.HALF)):
        if _is_near(ratio, at):
            return verdict
    fewer = (bus_factor(each) / bus_factor(ranks) for each in range(2, ranks))
    return TrafficVerdict.FEWER_RANKS if any(_is_near(ratio, each) for each in fewer) else TrafficVerdict.UNKNOWN


def _is_near(ratio: float, expected: float) -> bool:
    return abs(ratio / expected - 1) <= TOLERANCE


def diagnose(counts: Sequence[TrafficCount]) -> tuple[Diagnostic, ...]:
    """Return what is wrong with an exchange, each once a node."""
    return tuple({(each.node, each.verdict): _diagnose(each) for each in counts if each.verdict in DIAGNOSES}.values())


def _diagnose(counted: TrafficCount) -> Diagnostic:
    of_verdict = DIAGNOSES[counted.verdict]
    message = of_verdict.message.format(ratio=counted.ratio, interface=counted.interface)
    return replace(of_verdict, target=counted.node, message=message)
