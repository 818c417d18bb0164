"""Point-to-point tools, iperf3 and perftest, and the all-reduce of OSU's micro-benchmarks."""

from __future__ import annotations

from typing import Any

from vsphere_ml.bench.imports.parsed import Parsed, found, not_all_reduce, nothing, number, rows
from vsphere_ml.bench.record import LinkResult, Remark, SweepPoint, Workload
from vsphere_ml.core.errors import ConfigError

IPERF3 = "iperf3"
PERFTEST = "ib_write_bw"
OSU = "osu_allreduce"
# Older ones print MB/sec for the same, which is as easily taken for 10⁶ bytes: it is not guessed.
_UNITS = {"Gb/sec": 1e9 / 8, "MiB/sec": float(1 << 20)}
AVERAGE = 3  # of perftest's columns: bytes, iterations, peak, average
_OSU_MEANS = Remark(
    code="import.means",
    target=OSU,
    message="each time is the mean over ranks and iterations: the slowest rank's is longer",
    hint="osu_allreduce -f also prints the longest",
)


def is_iperf3(document: Any) -> bool:
    return isinstance(document, dict) and "test_start" in (document.get("start") or {})


def is_perftest(text: str) -> bool:
    return "BW average[" in text


def is_osu(text: str) -> bool:
    return "# OSU MPI" in text


def iperf3(document: Any) -> Parsed:
    """Return what the receiver got."""
    if document.get("error"):
        raise ConfigError(
            f"this iperf3 run failed: {document['error']}", code="import.empty", target=IPERF3, hint="run it again"
        )
    received = number(str(document.get("end", {}).get("sum_received", {}).get("bits_per_second", "")))
    if received is None:
        raise nothing(IPERF3, "end.sum_received")
    first = (document["start"].get("connected") or [{}])[0]
    ends = [str(first.get("local_host", "client")), str(first.get("remote_host", "server"))]
    sender, receiver = reversed(ends) if document["start"]["test_start"].get("reverse") else ends
    link = LinkResult(tool=IPERF3, sender=sender, receiver=receiver, bytes_per_s=received / 8)
    version = {"iperf3": str(document["start"].get("version", "")).removeprefix("iperf ")}
    return Parsed(tool=IPERF3, workload=Workload.LINK, ranks=2, links=(link,), versions=version)


def perftest(content: str) -> Parsed:
    """Return the average bandwidth of the largest message."""
    factor = next((factor for unit, factor in _UNITS.items() if f"BW average[{unit}]" in content), None)
    if factor is None:
        raise ConfigError(
            "this ib_write_bw output is neither in Gb/sec nor in MiB/sec",
            code="import.unit",
            target=PERFTEST,
            hint="--report_gbits",
        )
    seen = [
        (int(cells[0]), average)
        for cells in rows(content)
        if len(cells) > AVERAGE and (average := number(cells[AVERAGE])) is not None
    ]
    if not seen:
        raise nothing(PERFTEST, "bandwidth")
    size, average = max(seen)
    link = LinkResult(
        tool=PERFTEST,
        sender="client",
        receiver="server",
        bytes_per_s=average * factor,
        message_bytes=size,
        gpu_memory="gpu buffer" in content.lower(),
        rdma_mtu_bytes=int(found(r"^\s*Mtu\s*:\s*(\d+)\[B\]", content) or 0) or None,
    )
    return Parsed(tool=PERFTEST, workload=Workload.LINK, ranks=2, links=(link,))


def osu(content: str) -> Parsed:
    """Return the average latencies of osu_allreduce; with `-f` the longest rank's."""
    title = found(r"# OSU MPI(?:-CUDA)? (.*?) Test", content)
    if "Allreduce" not in title:
        raise not_all_reduce("OSU", title or "benchmark")
    longest = "Max Latency" in content
    column = 3 if longest else 1
    points = [
        SweepPoint(size_bytes=int(cells[0]), time_s=(time * 1e-6,))
        for cells in rows(content)
        if int(cells[0]) > 0 and len(cells) > column and (time := number(cells[column])) is not None
    ]
    if not points:
        raise nothing(OSU, "times")
    return Parsed(tool=OSU, workload=Workload.ALLREDUCE, sweep=tuple(points), remarks=() if longest else (_OSU_MEANS,))
