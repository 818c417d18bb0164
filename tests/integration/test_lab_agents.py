"""vSphere Cluster Services' VMs are vCenter's: hosts with them are made ready, and vsml stops none of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.integration import labs
from vsphere_ml.config.load import load_text
from vsphere_ml.core.hosts.host_changes import ShutDown
from vsphere_ml.lab.server import topology_file

if TYPE_CHECKING:
    from pathlib import Path

    from vsphere_ml.flows.hosts.host_apply import HostOutcome

pytestmark = pytest.mark.lab

VCLS = """
[[vm]]
name = "vCLS-{number}"
host = "esx-0{number}.lab.test"
cpus = 1
memory_gib = 1
disk_gib = 1
datastore = "vsan"
hardware_version = 20
power = "on"
agent = "{kind}"
"""


@pytest.mark.parametrize("kind", ["vcls", "vcls-external"])
def test_hosts_with_vcls_are_made_ready(kind: str, tmp_path: Path) -> None:
    """Embedded vCLS is managed by `VirtualCenter`, not by ESX Agent Manager: Broadcom KB 370219."""
    topology = tmp_path / "vcls.toml"
    agents = "".join(VCLS.format(number=number, kind=kind) for number in (1, 2))
    topology.write_text(topology_file("unready-8.0u3").read_text() + agents)
    text = labs.cluster_file(
        "agents",
        cluster="ampere",
        gpu='{ profile = "A100-40C" }',
        nic='{ kind = "sriov", port_group = "roce" }',
        nodes=2,
        more='[host_config]\nkinds = ["graphics", "sriov"]',
    )
    with labs.running(tmp_path / "state", str(topology)) as lab:
        vcenter = labs.gateway(lab)
        try:
            report = labs.brought(load_text(text), lab, vcenter)
        finally:
            vcenter.close()
    assert report.done, report.errors
    assert len(report.hosts) == 2
    assert not [step for host in report.hosts for step in _steps(host) if isinstance(step, ShutDown)]


def _steps(host: HostOutcome) -> list[object]:
    return [each.change for each in host.done]
