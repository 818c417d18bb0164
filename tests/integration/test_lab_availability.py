"""vSphere HA's admission control: reported before the start, and what the lab's vCenter then does."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING

import pytest

from tests.integration import labs
from vsphere_ml.config.load import load_text
from vsphere_ml.core.plan.outcome import Failed
from vsphere_ml.lab.server import topology_file

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.lab

# Of a terabyte a host, etl-7 reserves 64 GiB and a node 32 GiB.


@pytest.mark.parametrize("above", [0, 1])
def test_the_percentage_that_ha_keeps_is_the_one_that_is_told_before(tmp_path: Path, above: int) -> None:
    plain = topology_file("quad-8.0u3").read_text()
    keeps = f'policy = "percentage", memory_percent = {percent(plain) + above}, cpu_percent = 1'
    codes, failed = provisioned(tmp_path, keeps)
    assert codes == ["cluster.ha-admission"] * above
    assert failed == ({"vsphere.ha-admission"} if above else set())


# Hosts of 1 TiB, etl-7 with 64 GiB and two nodes of 32 GiB: three slots, of 64 GiB where no other size is set.
@pytest.mark.parametrize(
    ("policy", "refused"),
    [
        ('policy = "slots", failures = 2', False),
        ('policy = "slots", failures = 4', True),
        ('policy = "slots", failures = 3, slot_memory_mib = 32768', False),
        ('policy = "slots", failures = 3, slot_memory_mib = 524288', True),
    ],
)
def test_slots_are_counted_alike(tmp_path: Path, policy: str, *, refused: bool) -> None:
    codes, failed = provisioned(tmp_path, policy)
    assert codes == ["cluster.ha-admission"] * refused
    assert failed == ({"vsphere.ha-admission"} if refused else set())


def test_nothing_is_placed_on_a_failover_host(tmp_path: Path) -> None:
    names = ", ".join(f'"esx-0{number}.lab.test"' for number in (1, 2))
    assert provisioned(tmp_path, f'policy = "dedicated", hosts = [{names}]') == ([], set())


def provisioned(folder: Path, policy: str) -> tuple[list[str], set[str]]:
    """Return what was reported of HA before two nodes were started, and why they were not."""
    file = load_text(labs.cluster_file("kept", cluster="gpu", gpu='{ profile = "A100-40C" }', nodes=2))
    topology, plain = folder / "ha.toml", topology_file("quad-8.0u3").read_text()
    topology.write_text(plain.replace("[[cluster]]\n", f"[[cluster]]\nha = {{ {policy} }}\n", 1))
    with labs.running(folder / "state", str(topology)) as lab:
        vcenter = labs.gateway(lab)
        try:
            report = labs.brought(file, lab, vcenter)
        finally:
            vcenter.close()
    codes = [each.code for each in report.plan.diagnostics if each.code.startswith("cluster.ha-")]
    return codes, {each.error.code for each in report.outcomes if isinstance(each, Failed)}


def percent(topology: str) -> int:
    """Return the largest whole percentage that two more nodes leave of the topology's memory."""
    read = tomllib.loads(topology)
    per_host = sum(node["memory_gib"] for node in read["model"][0]["numa"])
    total = per_host * 4
    return (total - read["vm"][0]["memory_gib"] - 2 * 32) * 100 // total
