"""A vGPU's GPU is ESXi's choice: what provision makes of it, whichever of equally loaded GPUs ESXi takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.integration import labs
from vsphere_ml.cli.wiring.site_wiring import SystemClock
from vsphere_ml.config.load import load_text
from vsphere_ml.flows.cluster.destroy import destroy
from vsphere_ml.flows.run_context import RunContext
from vsphere_ml.flows.site.read_site import read_site
from vsphere_ml.lab.server import topology_file

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vsphere_ml.core.model.inventory import Inventory
    from vsphere_ml.lab.state import Lab

pytestmark = pytest.mark.lab

SRIOV = '{ kind = "sriov", model = "ConnectX-6 Dx", port_group = "roce" }'
_POLICY = 'assignment_policy = "performance"\n'


@pytest.fixture(scope="module", params=["lowest", "highest", "next"])
def lab(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """The quad site, whose ESXi breaks ties between equally loaded GPUs in one of three ways."""
    folder = tmp_path_factory.mktemp("tie")
    text = topology_file("quad-8.0u3").read_text()
    assert _POLICY in text
    topology = folder / f"{request.param}.toml"
    topology.write_text(text.replace(_POLICY, f'{_POLICY}assignment_tie = "{request.param}"\n'))
    with labs.running(folder / "state", str(topology)) as started:
        yield started


@pytest.mark.parametrize(
    "nodes", [2, 8, pytest.param(4, marks=pytest.mark.long), pytest.param(12, marks=pytest.mark.long)]
)
def test_every_node_ends_beside_the_gpu_that_esxi_chose_or_is_named(lab: Lab, nodes: int) -> None:
    text = labs.cluster_file("tie", cluster="gpu", gpu='{ profile = "A100-40C" }', nic=SRIOV, nodes=nodes)
    spec, clock, vcenter = load_text(text), SystemClock(), labs.gateway(lab)
    try:
        report = labs.brought(spec, lab, vcenter)
        seen = read_site(RunContext(spec, vcenter, lambda _: None, clock), why="first")
        destroy(RunContext(spec, vcenter, lambda _: None, clock), approve=lambda _: True)
    finally:
        vcenter.close()
    torn = {name for name, devices in _sockets(seen).items() if len(devices) > 1}
    assert torn == {each.target for each in report.degraded}
    assert report.done is not bool(torn)
    assert not torn or (report.error is not None and report.error.code == "provision.degraded")
    assert not torn or lab.topology.endswith("next.toml")  # a GPU of its own each time: no start may ever be right


def _sockets(seen: Inventory) -> dict[str, set[str]]:
    """Return the sockets that each node's GPU, NIC and NUMA affinity are on, by the site's addresses alone."""
    names = {vm.ref: vm for vm in seen.vms if vm.name.startswith("tie-")}
    found = {vm.name: {vm.settings.extra_config["numa.nodeAffinity"]} for vm in names.values() if vm.settings}
    for host in seen.hosts:
        held = [(gpu.address, use.vm) for gpu in host.gpus for use in gpu.used_by]
        held += [(nic.address, ref) for nic in host.nics for ref in nic.vf_holders]
        for address, ref in held:
            if ref in names:
                found[names[ref].name].add({"3": "0", "b": "1"}[address[5]])
    return found
