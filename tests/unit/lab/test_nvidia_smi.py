"""The lab's nvidia-smi, run on this machine with the guest's folders elsewhere: it knows what guests are asked."""

from __future__ import annotations

import runpy
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from vsphere_ml.bench.launch import remote_job
from vsphere_ml.core.model.guest import CommandAnswer
from vsphere_ml.core.report import nccl_topology
from vsphere_ml.core.tools import nvidia_smi
from vsphere_ml.guest.facts import verify
from vsphere_ml.guest.steps.gpu import driver, licence
from vsphere_ml.lab import guests

if TYPE_CHECKING:
    from tests.golden import Golden

PROGRAM = Path(guests.__file__).parent / "standins" / "nvidia-driver" / "usr" / "bin" / "nvidia-smi"


@pytest.fixture
def smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a guest with two vGPUs, whose nvidia-smi is the one on PATH."""
    text = PROGRAM.read_text()
    for folder in ("/run/modules", "/run/vsml-lab", "/usr/lib/vsml-lab"):
        (tmp_path / folder[1:]).mkdir(parents=True)
        text = text.replace(folder, f"{tmp_path}{folder}")
    (tmp_path / "usr/lib/vsml-lab/driver-version").write_text("535.183.06\n")
    (tmp_path / "run/modules/nvidia").touch()
    gpus = "".join(f"grid_a100-40c A100 10de:20f1 {at}\n" for at in range(2))
    (tmp_path / "run/vsml-lab/gpus").write_text(gpus)
    (tmp_path / "nvidia-smi").write_text(text)
    (tmp_path / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return tmp_path


def asked(command: str) -> CommandAnswer:
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=False)
    return CommandAnswer(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("command", [verify.NAMES, verify.ECC, verify.CLOCKS, driver.VERSION, nvidia_smi.QUERY])
@pytest.mark.usefixtures("smi")
def test_every_query_of_vsmls_has_a_row_of_each_gpu(command: str) -> None:
    answer = asked(command)
    assert answer.ok
    assert len(answer.text.splitlines()) == 2
    assert "N/A" not in answer.out


@pytest.mark.usefixtures("smi")
def test_a_field_that_nvidia_smi_does_not_have_is_refused_as_it_does(golden: Golden) -> None:
    answer = asked("nvidia-smi --query-gpu=uuid,clocks.smx --format=csv,noheader")
    assert answer.status == 2
    golden(answer.out)


@pytest.mark.usefixtures("smi")
def test_what_it_says_is_read() -> None:
    rows = runpy.run_path(str(remote_job.WORKLOADS / "rank.py"))["clocks"]()
    assert [row["throttle"] for row in rows] == ["0x0000000000000001"] * 2
    assert {link.gpu for link in nvidia_smi.parse_topology(asked(nvidia_smi.TOPOLOGY).out)} == {"GPU0", "GPU1"}
    gpus = asked("nvidia-smi --query-gpu=pci.bus_id --format=csv,noheader").text.splitlines()
    assert "GPU" not in nccl_topology.fill_bus_ids('<pci busid="GPU0"/><pci busid="GPU1"/>', gpus, [])
    assert licence.state(asked(licence.STATE)).startswith("Unlicensed")


def test_without_the_module_it_fails_as_nvidias_does(smi: Path) -> None:
    (smi / "run/modules/nvidia").unlink()
    recorded = Path(__file__).parents[2] / "cases" / "nvidia" / "nvidia-smi-without-driver.txt"
    answer = asked(verify.NAMES)
    assert (answer.status, answer.out.strip()) == (9, recorded.read_text().strip())
