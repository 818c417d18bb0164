"""What somebody left in a template does not become a node's: sockets of an odd size, limits of memory and CPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyVmomi import vim

from tests.integration import labs
from vsphere_ml.config.load import load_text
from vsphere_ml.lab.server import topology_file

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.lab

ODD = "cpus = 6\ncores_per_socket = 3\nmemory_limit_gib = 4\ncpu_limit_mhz = 500\nmemory_gib = 8\n"


def test_a_nodes_sockets_and_limits_are_its_own(tmp_path: Path) -> None:
    topology, plain = tmp_path / "odd.toml", topology_file("quad-8.0u3").read_text()
    assert "cpus = 4\nmemory_gib = 8\n" in plain
    topology.write_text(plain.replace("cpus = 4\nmemory_gib = 8\n", ODD))
    nic = '{ kind = "sriov", port_group = "roce" }'
    text = labs.cluster_file("odd", cluster="gpu", gpu='{ profile = "A100-40C" }', nic=nic)
    spec = load_text(text.replace("cpus = 2", "cpus = 10"))
    with labs.running(tmp_path / "state", str(topology)) as lab:
        vcenter = labs.gateway(lab)
        session = labs.sign_in(lab)
        try:
            report = labs.brought(spec, lab, vcenter)
            content = session.content
            view = content.viewManager.CreateContainerView(content.rootFolder, [vim.VirtualMachine], recursive=True)
            config = next(each.config for each in view.view if each.name == "odd-1")
        finally:
            session.close()
            vcenter.close()
    assert report.done, report.errors
    assert (config.hardware.numCPU, config.hardware.numCoresPerSocket) == (10, 10)
    assert (config.memoryAllocation.limit, config.cpuAllocation.limit) == (-1, -1)
