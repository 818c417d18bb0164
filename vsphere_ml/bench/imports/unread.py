"""Tools whose output is known and not read, each with what can be imported in its place."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from vsphere_ml.bench.imports.parsed import not_read

if TYPE_CHECKING:
    from collections.abc import Sequence

_TABLE = "the table that the same program prints on the terminal"
_LINES = (  # a line of the tool's own, its name, and what to give
    (r"^(?:Client connecting to|Server listening on) .*(?:TCP|UDP) port \d+", "iperf 2", "iperf3 -J"),
    (r"^# OSU .*(?:Latency|Bandwidth|Bcast|Reduce|Gather|Scatter)", "OSU's other benchmarks", "osu_allreduce -f"),
    (r"^\s*NVIDIA \(R\) nvbandwidth|^nvbandwidth Version", "nvbandwidth", "nccl-tests"),
    (r"\bhost_to_device_memcpy|\[CUDA Bandwidth Test\]", "a test of one host's memory", "nccl-tests"),
    (r"^qperf\b|^(?:rc|ud|tcp)_bw:\s*$", "qperf", "ib_write_bw, or iperf3 -J"),
    (r"^#\s*Benchmarking Allreduce|Intel\(R\) MPI Benchmarks", "Intel MPI Benchmarks", "osu_allreduce -f"),
    (r"^DLL \d{4}-\d\d-\d\d ", "NVIDIA's DLLogger", "Horovod's synthetic benchmark"),
    (r"^:::MLLOG ", "MLPerf's log", "Horovod's synthetic benchmark"),
)


def refuse_unread(lines: Sequence[str]) -> None:
    """Raise ConfigError `import.not-read` where one of these tools wrote the text."""
    for form, tool, instead in _LINES:
        compiled = re.compile(form)
        if any(compiled.search(line) for line in lines):
            raise not_read(tool, instead)


def refuse_unread_document(document: Any) -> None:
    """Raise ConfigError `import.not-read` where one of these tools wrote the JSON."""
    if isinstance(document, dict) and "test_info" in document:
        raise not_read("perftest's --out_json", _TABLE)
    if isinstance(document, dict) and "nvbandwidth" in document:
        raise not_read("nvbandwidth", "nccl-tests")
