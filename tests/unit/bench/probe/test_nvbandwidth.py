"""Copies between host and GPU memory, from nvbandwidth's JSON.

The documents are made after json_output.cpp of NVIDIA/nvbandwidth (commit 66746a3b); the rates are those of its README.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.bench.sites import rdma_nodes
from vsphere_ml.bench.probe import nvbandwidth
from vsphere_ml.core.errors import BenchError, NotPossible
from vsphere_ml.core.model.guest import CommandAnswer

TEST = "host_to_device_memcpy_ce"


def document(*rows: list[str], **more: Any) -> str:
    case = {"name": TEST, "status": "Passed", "bandwidth_matrix": [*rows], "sum": 51.97}
    return json.dumps({"nvbandwidth": {"version": "v0.8", "testcases": [case], **more}})


def test_each_gpu_is_a_result_in_bytes_per_second() -> None:
    found = nvbandwidth.parse_copies(document(["26.03", "25.94"]), "node-1")
    assert [(each.tool, each.device, round(each.bytes_per_s), each.gpu_memory) for each in found] == [
        (f"nvbandwidth {TEST}", "GPU 0", 26_030_000_000, True),
        (f"nvbandwidth {TEST}", "GPU 1", 25_940_000_000, True),
    ]
    assert {(each.sender, each.receiver) for each in found} == {("node-1", "node-1")}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "nvbandwidth: error",
        document(["N/A"]),
        document(["inf"]),
        document(["none"]),
        document(error="CUDA_ERROR_NO_DEVICE"),
        json.dumps({"nvbandwidth": {"testcases": [{"name": TEST, "status": "Waived"}]}}),
    ],
)
def test_what_holds_no_figure_is_an_error_and_never_a_traceback(text: str) -> None:
    with pytest.raises(BenchError) as failed:
        nvbandwidth.parse_copies(text, "node-1")
    assert (failed.value.code, failed.value.target) == ("bench.link", "node-1")


def test_both_directions_are_asked_for_one_after_the_other() -> None:
    asked: list[str] = []

    class Guest:
        name = "node-1"

        def run(self, command: str, **_how: object) -> CommandAnswer:
            asked.append(command)
            return CommandAnswer(0, document(["26.03"]))

    guest: Any = Guest()
    assert len(nvbandwidth.measure_copies(guest, "/opt/nvbandwidth/nvbandwidth")) == 2
    assert asked == [f"/opt/nvbandwidth/nvbandwidth -j -t {each}" for each in nvbandwidth.TESTS]


@pytest.mark.parametrize(("gpus", "tool"), [(0, "/opt/nvbandwidth/nvbandwidth"), (1, "")])
def test_without_a_gpu_or_the_tool_copies_are_refused(gpus: int, tool: str) -> None:
    one, other = (replace(each, gpus=1, nvbandwidth="/usr/bin/nvbandwidth") for each in rdma_nodes())
    nvbandwidth.check_nvbandwidth([one, other])
    with pytest.raises(NotPossible) as refused:
        nvbandwidth.check_nvbandwidth([one, replace(other, gpus=gpus, nvbandwidth=tool)])
    assert (refused.value.code, refused.value.target) == ("bench.no-tool", "node-2")
