"""vSphere HA's admission control: told before the start, and what the lab's vCenter then does."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING

import pytest

from tests.integration import labs
from vsphere_ml.config.load import load_text
from vsphere_ml.core.plan.outcome import Undone
from vsphere_ml.lab.server import topology_file

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.lab

# Four hosts of 512 GiB, 64 GiB of them reserved by etl-7; a node reserves 32 GiB.
HA = 'ha = {{ policy = "percentage", memory_percent = {percent}, cpu_percent = 1 }}'


@pytest.mark.parametrize("above", [0, 1])
def test_the_percentage_that_ha_keeps_is_the_one_that_is_told_before(tmp_path: Path, above: int) -> None:
    plain = topology_file("quad-8.0u3").read_text()
    file = load_text(labs.cluster_file("kept", cluster="gpu", gpu='{ profile = "A100-40C" }', nodes=2))
    topology = tmp_path / "ha.toml"
    topology.write_text(
        plain.replace("[[cluster]]\n", f"[[cluster]]\n{HA.format(percent=percent(plain) + above)}\n", 1)
    )
    with labs.running(tmp_path / "state", str(topology)) as lab:
        vcenter = labs.gateway(lab)
        try:
            report = labs.brought(file, lab, vcenter)
        finally:
            vcenter.close()
    texts = [each.code for each in report.plan.diagnostics if each.code.startswith("cluster.ha-")]
    assert texts == ["cluster.ha-admission"] * above
    failed = {each.error.code for each in report.outcomes if isinstance(each, Undone)}
    assert failed == ({"vsphere.ha-admission"} if above else set())


def percent(topology: str) -> int:
    """Return the largest whole percentage that two more nodes leave of the topology's memory."""
    read = tomllib.loads(topology)
    per_host = sum(node["memory_gib"] for node in read["model"][0]["numa"])
    total = per_host * 4
    return (total - read["vm"][0]["memory_gib"] - 2 * 32) * 100 // total
