"""What goes between a node's own memory and its GPUs': NVIDIA's nvbandwidth, by the GPUs' copy engines.

Its JSON is that of json_output.cpp in NVIDIA/nvbandwidth: matrices of GB/s (10^9 bytes) as text, `N/A` where a pair has
none. Each pair is measured by itself, and the figure is the median of its samples.
"""

from __future__ import annotations

import math
import shlex
from typing import TYPE_CHECKING, Any

from vsphere_ml.bench.model.record import LinkResult
from vsphere_ml.core import json_text
from vsphere_ml.core.errors import BenchError, NotPossible
from vsphere_ml.core.hints import CommandLine

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from vsphere_ml.bench.probe.survey import Surveyed
    from vsphere_ml.core.model.guest import Shell

TOOL = "nvbandwidth"
TESTS = ("host_to_device_memcpy_ce", "device_to_host_memcpy_ce")
PLACES = ("/opt/nvbandwidth", "/usr/local/nvbandwidth", "/root/nvbandwidth")  # where a build of one's own may lie
PROBE = f"command -v {TOOL} || ls {' '.join(f'{each}/{TOOL}' for each in PLACES)} 2>/dev/null | head -n 1"
TIMEOUT_S = 300
_BUILD = "build https://github.com/NVIDIA/nvbandwidth (cmake . && make) in /opt/nvbandwidth of each node"


def check_nvbandwidth(surveyed: Sequence[Surveyed]) -> None:
    """Raise NotPossible `bench.no-tool` where a guest has no GPU or not the tool."""
    for each in surveyed:
        absent = "no GPU" if not each.gpus else "" if each.nvbandwidth else f"no {TOOL}"
        if absent:
            raise NotPossible(
                f"{each.node} has {absent}: copies between host and GPU memory cannot be measured",
                code="bench.no-tool",
                target=each.node,
                hint=_BUILD if each.gpus else "`vsml verify` shows each node's GPU and driver",
            )


def measure_copies(shell: Shell, path: str) -> tuple[LinkResult, ...]:
    """Return what goes to each GPU's memory and back; BenchError `bench.link` when nothing does."""
    texts = (shell.run(f"{shlex.quote(path)} -j -t {test}", timeout_s=TIMEOUT_S).out for test in TESTS)
    return tuple(each for text in texts for each in parse_copies(text, shell.name))


def parse_copies(text: str, node: str) -> tuple[LinkResult, ...]:
    """Return one result a GPU from the tool's JSON; errors as `measure_copies`."""
    try:
        document = json_text.parse(text)[TOOL]
        tests = document.get("testcases", ())
        results = tuple(each for test in tests for each in _results(test, node))
        if results:
            return results
        why = str(document.get("error") or [test.get("status") for test in tests])
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        why = f"{type(error).__name__}: {error}"
    raise BenchError(
        f"{TOOL} on {node} measured nothing: {why}",
        code="bench.link",
        target=node,
        hint=CommandLine(f"vsml ssh {node} -- {TOOL} -t {TESTS[0]}"),
    )


def _results(test: dict[str, Any], node: str) -> Iterator[LinkResult]:
    for row in test.get("bandwidth_matrix", ()):
        for gpu, value in enumerate(row):
            if value != "N/A" and 0 < float(value) < math.inf:
                yield LinkResult(
                    tool=f"{TOOL} {test['name']}",
                    sender=node,
                    receiver=node,
                    bytes_per_s=float(value) * 1e9,
                    gpu_memory=True,
                    device=f"GPU {gpu}",
                )
