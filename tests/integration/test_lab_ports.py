"""Port groups that make no more ports than they have."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.integration import labs
from vsphere_ml.cli.wiring.site_wiring import SystemClock
from vsphere_ml.config.load import load_text
from vsphere_ml.flows.cluster.plan import compare
from vsphere_ml.flows.run_context import RunContext
from vsphere_ml.flows.site.read_site import read_site
from vsphere_ml.lab.server import topology_file

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.lab


def test_new_vms_that_find_too_few_ports_are_a_finding_before_they_are_cloned(tmp_path: Path) -> None:
    group = 'name = "vm-mgmt"\ndvs'
    text = topology_file("quad-8.0u3").read_text()
    assert group in text
    topology = tmp_path / "few.toml"
    topology.write_text(text.replace(group, 'name = "vm-mgmt"\nports = 4\ndvs'))
    gpu = '{ profile = "A100-40C" }'
    with labs.running(tmp_path / "state", str(topology)) as lab:
        vcenter = labs.gateway(lab)
        try:
            for nodes, found in ((2, False), (3, True)):  # two ports are the template's and the other VM's
                spec = load_text(labs.cluster_file("few", cluster="gpu", gpu=gpu, nodes=nodes))
                seen = read_site(RunContext(spec, vcenter, lambda _: None, SystemClock()), why="first")
                mgmt = next(each for each in seen.networks if each.name == "vm-mgmt")
                assert (mgmt.ports, mgmt.free_ports) == (4, 2)
                codes = {each.code for each in compare(spec, seen).plan.diagnostics}
                assert ("network.ports" in codes) is found
        finally:
            vcenter.close()
