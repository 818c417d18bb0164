"""GPUs' clocks, from the driver's answer in a guest to the record. The driver here is a stand-in, a shell script."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.unit.bench.jobs import place, told
from vsphere_ml.bench.launch import remote_job
from vsphere_ml.bench.model import rank_log
from vsphere_ml.bench.probe import clocks

if TYPE_CHECKING:
    from pathlib import Path

    from tests.golden import Golden

# Rows as `nvidia-smi --format=csv,noheader` prints them; written by hand.
ROWS = (
    {"uuid": "GPU-1", "sm": "1410 MHz", "memory": "1215 MHz", "throttle": "0x0000000000000000", "ecc": "Enabled"},
    {"uuid": "GPU-1", "sm": "1095 MHz", "memory": "1215 MHz", "throttle": "0x0000000000000024", "ecc": "Enabled"},
    {"uuid": "GPU-2", "sm": "[N/A]", "memory": "[N/A]", "throttle": "[N/A]", "ecc": "[N/A]"},
)


def test_a_throttled_gpu_is_told_with_its_range_and_reasons(golden: Golden) -> None:
    texts = {"node-1": place(0) + "".join(told(kind="clocks", gpus=[row]) for row in ROWS), "node-2": place(1)}
    golden(clocks.by_node(rank_log.read(texts)))


def row(sm: int, throttle: str) -> dict[str, str]:
    return {"uuid": "GPU-1", "sm": f"{sm} MHz", "memory": "3201 MHz", "throttle": throttle, "ecc": "Enabled"}


@pytest.mark.parametrize(
    "looks",
    [
        [row(345, "0x0000000000000001"), row(1980, "0x0000000000000000"), row(1950, "0x0000000000000004")],
        [row(345, "0x0000000000000001")],
    ],
)
def test_a_gpu_that_rests_is_not_throttled(looks: list[dict[str, str]], golden: Golden) -> None:
    texts = {"node-1": place(0) + told(kind="clocks", gpus=looks)}
    golden(clocks.by_node(rank_log.read(texts)))


# Stand-ins of drivers: one of today, one that knows the new name of the reasons alone, one that knows neither.
SMI = """\
#!/bin/sh
case $1 in {refused}) echo "Field is not a valid field to query." >&2; exit 2 ;; esac
case $1 in *reasons*) echo "GPU-1, 1410 MHz, 1215 MHz, 0x0000000000000000, Enabled" ;;
*) echo "GPU-1, 1410 MHz, 1215 MHz, Enabled" ;; esac
"""


@pytest.mark.parametrize(("refused", "throttle"), [("none", True), ("*throttle*", True), ("*reasons*", False)])
def test_a_driver_that_knows_other_fields_tells_what_it_knows(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    refused: str,
    throttle: bool,  # noqa: FBT001 - a parameter
) -> None:
    smi = tmp_path / "nvidia-smi"
    smi.write_text(SMI.format(refused=refused))
    smi.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    (row,) = runpy.run_path(str(remote_job.WORKLOADS / "rank.py"))["clocks"]()
    assert (row["sm"], row["ecc"], "throttle" in row) == ("1410 MHz", "Enabled", throttle)


def test_a_rank_asks_the_driver_while_its_program_runs(tmp_path: Path) -> None:
    smi = tmp_path / "nvidia-smi"
    smi.write_text('#!/bin/sh\necho "GPU-1, 1410 MHz, 1215 MHz, 0x0000000000000000, Enabled"\n')
    smi.chmod(0o755)
    rank = (remote_job.WORKLOADS / "rank.py").read_text().replace("CLOCKS_S = 10.0", "CLOCKS_S = 0.01")
    (tmp_path / "rank.py").write_text(rank.replace("POLL_S = 2.0", "POLL_S = 0.05"))
    subprocess.run(
        [
            sys.executable,
            tmp_path / "rank.py",
            "--folder",
            tmp_path,
            "--",
            sys.executable,
            "-c",
            "import time; time.sleep(3)",
        ],
        check=True,
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", "HOROVOD_RANK": "0"},
    )
    kinds = [json.loads(line) for line in (tmp_path / "rank-0.jsonl").read_text().splitlines()]
    looks = [line["gpus"] for line in kinds if line["kind"] == "clocks"]
    assert looks[0] == [ROWS[0]]
