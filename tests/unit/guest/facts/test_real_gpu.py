"""What a machine with an NVIDIA GPU answers to what guests are asked. Where there is no driver, nothing runs.

    python -m pytest tests/unit/guest/facts/test_real_gpu.py

The machine counts as a node whose GPUs are handed through whole.
"""

from __future__ import annotations

import runpy
import shutil
import subprocess

import pytest

from tests import skips
from tests.unit.bench.jobs import place, told
from tests.unit.guest.cluster import facts
from vsphere_ml.bench.launch import remote_job
from vsphere_ml.bench.model import rank_log
from vsphere_ml.bench.probe import clocks
from vsphere_ml.core.diagnostics import Severity
from vsphere_ml.core.model.guest import CommandAnswer
from vsphere_ml.core.report import nccl_topology
from vsphere_ml.core.tools import nvidia_smi
from vsphere_ml.guest.facts import judge
from vsphere_ml.guest.facts.verify import CLOCKS, ECC, NAMES
from vsphere_ml.guest.steps.gpu import driver

pytestmark = pytest.mark.skipif(shutil.which("nvidia-smi") is None, reason=skips.GPU)


def asked(command: str) -> CommandAnswer:
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=False, timeout=60)
    return CommandAnswer(done.returncode, done.stdout, done.stderr)


def count() -> int:
    return sum(line.startswith("GPU ") for line in asked("nvidia-smi -L").out.splitlines())


def test_passthrough_gpus_are_in_order_by_what_they_answer() -> None:
    node = facts(profile="", gpus=count())
    assert judge.gpus(asked(NAMES), node)[0] is Severity.OK
    assert judge.clocks(asked(CLOCKS), node)[0] is Severity.OK
    assert judge.container(asked("nvidia-smi -L"), node)[0] is Severity.OK
    verdict, evidence = judge.ecc(asked(ECC), node)
    assert verdict in {Severity.OK, Severity.UNKNOWN}, evidence  # a GPU without ECC tells none


def test_the_drivers_version_has_a_branch() -> None:
    answer = asked(driver.VERSION)
    assert driver.branch(answer.text.partition("\n")[0]).isdigit(), answer


def test_every_gpu_has_a_row_in_the_matrix() -> None:
    links = nvidia_smi.parse_topology(asked(nvidia_smi.TOPOLOGY).out)
    assert {link.gpu for link in links} == {f"GPU{at}" for at in range(count())}
    assert all(link.kind == "X" for link in links if link.gpu == link.other)


def test_every_gpu_has_a_place_in_nccls_topology() -> None:
    gpus = asked("nvidia-smi --query-gpu=pci.bus_id --format=csv,noheader").text.splitlines()
    text = "".join(f'<pci busid="GPU{at}"/>' for at in range(count()))
    assert "GPU" not in nccl_topology.fill_bus_ids(text, gpus, [])


def test_mig_modes_are_told_by_address_of_gpus_that_have_one() -> None:
    answer = asked(nvidia_smi.QUERY)
    assert answer.ok, answer
    told_of = {line for line in answer.text.splitlines() if "N/A" not in line}
    assert len(nvidia_smi.modes(answer.out)) == len(told_of)


def test_a_rank_tells_every_gpus_clocks_and_reasons() -> None:
    rank = runpy.run_path(str(remote_job.WORKLOADS / "rank.py"))
    rows = rank["clocks"]()
    assert len(rows) == len(rank["gpus"]()) == count()
    assert all(row["throttle"].startswith("0x") for row in rows), rows
    (words,) = clocks.by_node(rank_log.read({"node-1": place(0) + told(kind="clocks", gpus=rows)})).values()
    assert "SM not told" not in words, words


def test_a_field_that_no_driver_knows_is_refused() -> None:
    assert not asked("nvidia-smi --query-gpu=uuid,vsml.nonsense --format=csv,noheader").ok
