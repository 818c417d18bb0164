"""Lays out descriptions of public logs (tests/cases/public_logs) as their tools print them, collected in many ways.

The layouts were written after the tools' sources: nccl-tests' src/common.cu and src/*.cu from 2017 to 2026, perftest's
perftest_parameters.h, OSU's osu_util.c, iperf3's iperf_locale.c, tf_cnn_benchmarks' benchmark_cnn.py.
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vsphere_ml.bench.imports import log
from vsphere_ml.bench.imports.files import one
from vsphere_ml.bench.imports.parsed import ImportOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from vsphere_ml.bench.model.record import Run

FOLDER = Path(__file__).parents[1] / "cases" / "public_logs"
NOON = "2026-01-31T12:00:00Z"
Described = dict[str, Any]

# The columns before the figures that each program had of its own until August 2022.
_OWN = {
    "all_reduce": ("redop",),
    "reduce_scatter": ("redop",),
    "alltoall": ("redop",),
    "reduce": ("redop", "root"),
    "broadcast": ("root",),
    "gather": ("root",),
    "scatter": ("root",),
}
_RULE = "-" * 87


def descriptions() -> list[Described]:
    """Return every description."""
    nccl = tomllib.loads((FOLDER / "nccl-tests.toml").read_text())["log"]
    others = tomllib.loads((FOLDER / "others.toml").read_text())["log"]
    return [{"tool": "nccl-tests", **each} for each in nccl] + list(others)


def text(described: Described) -> str:
    """Return the log without any prefix."""
    once = "\n".join(_LAYOUTS[described["tool"]](described)) + "\n"
    if described.get("pieces"):
        return _before(described["prefix"])(once)
    return once * 2 if described.get("twice") else once


def given(described: Described) -> ImportOptions:
    """Return what a person has to say of it."""
    answers = dict(described.get("given", {}))
    return ImportOptions(**answers, collective=described["collective"] if described.get("ask") else "")


def imported(content: str | bytes, given: ImportOptions) -> Run:
    """Return the run of a text."""
    return one(log.read([content if isinstance(content, bytes) else content.encode()], "log"), given, NOON)


def _nccl(described: Described) -> Iterator[str]:
    layout, collective = described["layout"], described["collective"]
    pieces = described["prefix"] if described.get("pieces") else ""
    if described.get("named") and layout != "2025":
        yield f"mpirun -np 8 ./build/{collective}_perf -b 8 -e 8G -f 2"
    if layout == "2025":
        yield "# nccl-tests version 2.17.6 nccl-headers=22809 nccl-library=22809"
        yield f"# Collective test starting: {collective}_perf"
    yield "# nThread 1 nGpus 1 minBytes 8 maxBytes 8589934592 step: 2(factor) warmup iters: 5 iters: 20 validation: 1 "
    yield "#"
    if described["hosts"]:
        yield "# Using devices"
        yield from _devices(described["hosts"], layout)
    yield "#"
    yield from _titles(layout, collective)
    for row in described["rows"]:
        yield _row(row.split(), layout, collective, pieces)
    yield "# Out of bounds values : 0 OK"
    yield f"# Avg bus bandwidth    : {_average(described['rows']):g} "
    yield "#"
    if layout == "2025":
        yield f"# Collective test concluded: {collective}_perf"


def _devices(hosts: list[int], layout: str) -> Iterator[str]:
    rank = 0
    for host, count in enumerate(hosts):
        for index in range(count):
            who = f"Pid {4000 + rank} on {f'node-{host}':>10} device {index:2}"
            yield (
                f"#   Rank {rank:2} {who} [0x{16 + index:02x}] NVIDIA GPU"
                if layout < "2022"
                else f"#  Rank {rank:2} Group  0 {who} [0000:{16 + index:02x}:00] NVIDIA GPU"
            )
            rank += 1


def _fields(layout: str, collective: str) -> tuple[str, ...]:
    return ("redop", "root") if layout >= "2022" else _OWN.get(collective, ())


def _titles(layout: str, collective: str) -> Iterator[str]:
    fields = _fields(layout, collective)
    if layout == "2017":
        names = tuple("op" if field == "redop" else field for field in fields)
        methods = ("time", "algbw", "busbw", "res")
        yield "#                                            out-of-place                    in-place"
        yield "# " + "  ".join(f"{title:>10}" for title in ("bytes", "N", "type", *names, *methods, *methods))
        return
    last = "#wrong" if layout >= "2022" else "error"
    methods = ("time", "algbw", "busbw", last)
    yield "#                                                     out-of-place                       in-place          "
    yield "# " + "  ".join(f"{title:>8}" for title in ("size", "count", "type", *fields, *methods, *methods))
    yield "#        (B)    (elements)                     (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)       "


def _row(cells: list[str], layout: str, collective: str, pieces: str) -> str:
    """Return a row with its fields in their places; an operation that is blank leaves a gap."""
    figures, left = cells[-8:], cells[:-8]
    gap = " " * 8 if len(left) < 3 + len(_fields(layout, collective)) else ""
    head = "".join(f"{cell:>12}  " for cell in left) + gap
    methods = ["  ".join(f"{cell:>7}" for cell in figures[at : at + 4]) for at in (0, 4)]
    return pieces.strip().join((head, f"  {methods[0]}", f"  {methods[1]}"))


def _average(rows: list[str]) -> float:
    buses = [float(row.split()[at]) for row in rows for at in (-6, -2)]
    return sum(buses) / len(buses)


def _osu(described: Described) -> Iterator[str]:
    yield ""
    yield f"# {described['title']}"
    if "data_type" in described:
        yield f"# Datatype: {described['data_type']}."
    full = "   Min Latency(us)   Max Latency(us)  Iterations" if described.get("full") else ""
    yield described.get("head", f"# Size       Avg Latency(us){full}")
    for row in described["rows"]:
        size, *cells = row.split()
        yield f"{size:<10}" + "".join(f"{cell:>18}" for cell in cells)


def _perftest(described: Described) -> Iterator[str]:
    unit = described["unit"]
    yield described.get("command", "")
    yield _RULE
    yield from _perftest_head(described) if "test" in described else ()
    yield f" #bytes     #iterations    BW peak[{unit}]    BW average[{unit}]   MsgRate[Mpps]"
    for row in described["rows"]:
        size, count, peak, average, rate = row.split()
        yield f" {size:<7}    {count:<10}       {peak:<7}            {average:<7}\t\t   {rate}"
    yield _RULE


def _perftest_head(described: Described) -> Iterator[str]:
    qps = described.get("qps", 1)
    yield f"                    {described['test']}"
    yield f" Dual-port       : {'ON' if described.get('dual_port') else 'OFF'}\t\tDevice         : mlx5_0"
    yield f" Number of qps   : {qps}\t\tTransport type : IB"
    yield f" Mtu             : {described['mtu']}[B]"
    yield f" Link type       : {described['link']}"
    yield _RULE
    for end, lid in zip(("local", "remote"), described.get("lids", ["0x02"]), strict=False):
        yield from [f" {end} address: LID {lid} QPN 0x0032 PSN 0x5f2841"] * qps
    yield _RULE


def _iperf3(described: Described) -> Iterator[str]:
    yield "Connecting to host 192.0.2.2, port 5201"
    yield "[  5] local 192.0.2.1 port 40000 connected to 192.0.2.2 port 5201"
    yield "[ ID] Interval           Transfer     Bitrate         Retr  Cwnd"
    yield from described["rows"]
    yield "iperf Done."


def _horovod(described: Described) -> Iterator[str]:
    yield f"Model: {described['model']}"
    yield f"Batch size: {described['batch']}"
    yield f"Number of GPUs: {described['ranks']}"
    yield "Running warmup..."
    yield "Running benchmark..."
    for at, rate in enumerate(described["rows"]):
        yield f"Iter #{at}: {rate} img/sec per GPU"
    mean = sum(map(float, described["rows"])) / len(described["rows"])
    yield f"Img/sec per GPU: {mean:.1f} +-1.2"
    count = int(described["ranks"])
    yield f"Total img/sec on {count} GPU(s): {count * mean:.1f} +-4.9"


def _tf_cnn(described: Described) -> Iterator[str]:
    yield "TensorFlow:  1.14"
    if described["everywhere"]:
        yield f"Model:       {described['model']}"
        yield f"Batch size:  {described['everywhere']} global"
        yield f"             {described['each']} per device"
    if "mode" in described:
        yield f"Mode:        {described['mode']}"
    if "devices" in described:
        yield f"Devices:     {described['devices']}"
    if "variables" in described:
        yield f"Variables:   {described['variables']}"
    if "sync" in described:
        yield f"Sync:        {described['sync']}"
    yield "Step\tImg/sec\ttotal_loss"
    yield "100\timages/sec: 154.2 +/- 0.4 (jitter = 4.0)\t8.372"
    for total in described["rows"]:
        yield "-" * 64
        yield f"total images/sec: {total}"
        yield "-" * 64


def _dll(described: Described) -> Iterator[str]:
    for row in described["rows"]:
        yield f"DLL 2021-02-18 06:21:29.862595 - () train_throughput : {row}"


def _pytorch(described: Described) -> Iterator[str]:
    for row in described["rows"]:
        own, mean = row.split()
        yield f"Epoch: [0][626/626]\tTime  {own} ( {mean})\tData  2.053 ( 2.954)\tLoss 4.4438e+00 (5.4188e+00)"


_LAYOUTS: dict[str, Callable[[Described], Iterator[str]]] = {
    "nccl-tests": _nccl,
    "osu": _osu,
    "perftest": _perftest,
    "iperf3": _iperf3,
    "horovod": _horovod,
    "tf_cnn": _tf_cnn,
    "dll": _dll,
    "pytorch": _pytorch,
}


def _before(*prefixes: str) -> Callable[[str], str]:
    """Return what puts these before the lines, in turn."""

    def collected(plain: str) -> str:
        lines = plain.splitlines()
        return "".join(f"{prefixes[at % len(prefixes)]}{line}\n" for at, line in enumerate(lines))

    return collected


def _in_json(key: str) -> Callable[[str], str]:
    """Return what writes a line of JSON for each line, as log services keep them."""
    return lambda plain: "".join(
        json.dumps({key: line, "stream": "stdout", "time": NOON}) + "\n"
        for line in plain.splitlines(keepends=key == "log")
    )


def _numbered(form: str) -> Callable[[str], str]:
    return lambda plain: "".join(f"{form.format(at)}{line}\n" for at, line in enumerate(plain.splitlines(), start=1))


def _coloured(plain: str) -> str:
    return "".join(f"\x1b[36m{line[:3]}\x1b[0m{line[3:]}\x1b[K\n" for line in plain.splitlines())


WRAPPED: dict[str, Callable[[str], str]] = {
    "csv": lambda plain: "Date,Message\n" + "".join(f'"{NOON}","{line}"\n' for line in plain.splitlines()),
    "grep-file": _before("run.log:"),
    "diff": _before("+"),
    "logcli": _before('{pod="launcher"} '),
    "tai64n": _before("@4000000065e6f3a01234abcd "),
    "fluentd": lambda plain: "".join(f"{NOON}\tkube.x\t{line}" for line in _in_json("log")(plain).splitlines(True)),
    "events": lambda plain: json.dumps({"events": [{"message": line} for line in plain.splitlines()]}, indent=4),
}
COLLECTED: dict[str, Callable[[str], str | bytes]] = {
    "open-mpi": _before("[1,0]<stdout>:"),
    "open-mpi-5": _before("[prterun-node-0-77@1,0]<stdout>: "),
    "open-mpi-time": _before("Tue Mar  5 10:00:00 2024[1,0]<stdout>:", "Tue Mar 15 10:00:01 2024[1,0]<stdout>:"),
    "horovod-gloo": _before("[0]<stdout>:"),
    "srun-label": _before("0: "),
    "srun-label-wide": _before(" 0: "),
    "hydra": _before("[0] "),
    "torchrun": _before("[default0]:", "[rank0]: "),
    "kubectl-prefix": _before("[pod/nccl-launcher-x7k2p/launcher] "),
    "kubectl-time": _before("2024-03-05T10:00:00.123456789Z ", "2024-03-05T10:00:01.2Z "),
    "container-runtime": _before("2024-03-05T10:00:00.123456789Z stdout F "),
    "kubectl-time-and-tag": _before("2024-03-05T10:00:00.123456789Z [1,0]<stdout>:"),
    "compose": _before("worker-1  | "),
    "pdsh": _before("node-1: "),
    "stern": _before("nccl-launcher-x7k2p launcher-0 "),
    "stern-word": lambda plain: "+ nccl-x7k2p › launcher\n" + _before("nccl-x7k2p launcher ")(plain),
    "stern-colours": _before("\x1b[36mnccl-x7k2p\x1b[0m \x1b[33mlauncher\x1b[0m "),
    "stern-all-namespaces": _before("default nccl-launcher-x7k2p launcher [1,0]<stdout>:"),
    "kubetail": _before("[nccl-launcher-x7k2p launcher] "),
    "glog": _before("I0305 10:00:00.123456 12345 nccl.cc:123] "),
    "klog": _before("I0305 10:00:00.123456       1 launcher.go:55] "),
    "absl": _before("I20240305 10:00:00.123456 139826748643072 tf_logging.py:115] "),
    "logging": _before("INFO:root:"),
    "logging-time": _before("2024-03-05 10:00:00,123 - root - INFO - "),
    "airflow": _before("[2024-03-05, 10:00:00 UTC] {subprocess.py:93} INFO - "),
    "sagemaker": _before("[1,mpirank:0,algo-1]<stdout>:"),
    "ray": _before("(RayTrainWorker pid=1234, ip=10.0.0.1) "),
    "syslog": _before("Mar  5 10:00:00 node1 nccl[77]: "),
    "logger": _before("[2024-03-05 10:00:00,123] "),
    "clock": _before("10:00:00 ", "10:00:01.5 "),
    "compose-foreman": _before("10:00:00 nccl.1 | "),
    "pdsh-address": _before("10.0.0.1: "),
    "open-mpi-5-detailed": _before("[1,0][node-0:77]<stdout>: "),
    "open-mpi-5-time": _before("[2024-03-05 10:00:00][prterun-node-0-77@1,0]<stdout>: "),
    "mvapich": _before("[0]:"),
    "torchrun-role": _before("[trainer0]:"),
    "alps": _before("[PE_0]: ", "[NID 00123] "),
    "flux": _before("[  0.123456s] "),
    "journald-full": _before("Tue 2024-03-05 10:00:00 UTC node1 nccl[77]: "),
    "journald-unit": _before("Tue 2024-03-05 10:00:00 CET nccl.service[77]: "),
    "journald-monotonic": _before("[ 1234.567890] node1 nccl[77]: "),
    "journald-unix": _before("1709632800.123456 node1 nccl[77]: "),
    "journald-json": _in_json("MESSAGE"),
    "docker-json": _in_json("log"),
    "loki-jsonl": _in_json("line"),
    "google-cloud": _in_json("textPayload"),
    "rfc-5424": _before("<13>1 2024-03-05T10:00:00.123456+00:00 node1 nccl 77 - - "),
    "rfc-5424-data": _before('<13>1 2024-03-05T10:00:00Z node1 nccl 77 - [timeQuality tzKnown="1" isSynced="1"] '),
    "rfc-3164": _before("<13>Mar  5 10:00:00 node1 nccl[77]: "),
    "ts": _before("Mar 05 10:00:00 "),
    "ts-unix": _before("1709632800 ", "1709632801 "),
    "ts-unix-fraction": _before("1709632800.123456 "),
    "github-cli": _before("bench\tRun nccl-tests\t2024-03-05T10:00:00.1234567Z "),
    "gitlab": _before("2024-03-05T10:00:00.123456Z 01O ", "2024-03-05T10:00:01.123456Z 01O+"),
    "buildkite": _before("\x1b_bk;t=1709632800123\x07"),
    "cloudwatch": _before("1709632800123\t", "1709632800124\t"),
    "cloudwatch-tail": _before("2024-03-05T10:00:00.123000+00:00 algo-1/train-1709632800 "),
    "loguru": _before("2024-03-05 10:00:00.123 | INFO     | __main__:run:42 - "),
    "structlog": _before("2024-03-05 10:00:00 [info     ] "),
    "nomad": _before("2024-03-05T10:00:00.123Z [INFO] "),
    "heroku": _before("2024-03-05T10:00:00.123456+00:00 app[worker.1]: "),
    "numbered": _numbered("{:6}\t"),
    "grep-numbered": _numbered("{}:"),
    "quoted": _before("> "),
    "colours": _coloured,
    "crlf": lambda plain: plain.replace("\n", "\r\n"),
    "mark": lambda plain: b"\xef\xbb\xbf" + plain.encode(),
    "utf-16": lambda plain: plain.encode("utf-16"),
    "utf-16-bare": lambda plain: plain.encode("utf-16-le"),
    "indented": _before("    "),
}
