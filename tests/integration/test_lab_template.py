"""`vsml check --template` on the lab: what vCenter knows of a template, and the exit status of what is missing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.integration import labs
from vsphere_ml.cli import app
from vsphere_ml.core.diagnostics import Severity
from vsphere_ml.lab.server import topology_file

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.lab


@pytest.mark.parametrize(
    ("knobs", "status", "missing"),
    [
        ("tools = true", 0, []),
        ("tools = false\nsilent = true", 3, ["guests may tell vCenter"]),
        ('firmware = "bios"', 3, ["firmware, guest and snapshot"]),
    ],
)
def test_a_template_is_judged_by_what_vcenter_knows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], knobs: str, status: int, missing: list[str]
) -> None:
    text = topology_file("quad-8.0u3").read_text()
    if knobs.startswith("firmware"):
        text = text.replace('firmware = "efi"', knobs)
    else:
        text = text.replace('firmware = "efi"', f'firmware = "efi"\n{knobs}')
    topology, file = tmp_path / "site.toml", tmp_path / "cluster.toml"
    topology.write_text(text)
    file.write_text(labs.cluster_file("checked", cluster="gpu", gpu='{ profile = "A100-40C" }'))
    with labs.running(tmp_path / "state", str(topology)):
        capsys.readouterr()
        assert app.run(["check", str(file), "--template", "-o", "json"]) == status
    facts = json.loads(capsys.readouterr().out)["data"]["template"]
    assert [each["target"] for each in facts if each["severity"] == "error"] == missing
    tools = next(each for each in facts if each["target"] == "VMware Tools")
    assert tools["severity"] == (Severity.UNKNOWN if "tools = false" in knobs else Severity.OK)
