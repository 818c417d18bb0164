"""GPUs and NICs that vsml has no data sheet of: carried by what vCenter tells of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.integration import labs
from vsphere_ml.cli.wiring.site_wiring import SystemClock
from vsphere_ml.config.load import load_text
from vsphere_ml.core.catalog.boards import BOARDS
from vsphere_ml.core.rules import check
from vsphere_ml.core.rules.reasons import RejectReason
from vsphere_ml.flows.cluster.plan import compare
from vsphere_ml.flows.run_context import RunContext
from vsphere_ml.flows.site.read_site import read_site
from vsphere_ml.lab.server import topology_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from vsphere_ml.lab.state import Lab

pytestmark = pytest.mark.lab

PROFILE = "nvidia_rtx_pro_6000_blackwell_dc-{}c"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """The quad site with Blackwell GPUs and ConnectX-8."""
    folder = tmp_path_factory.mktemp("new")
    text = topology_file("quad-8.0u3").read_text()
    text = text.replace("A100-PCIE-40GB", "RTX-PRO-6000-BLACKWELL").replace("ConnectX-6-Dx", "ConnectX-8")
    topology = folder / "new.toml"
    topology.write_text(text.replace("grid_a100-40c", PROFILE.format(96)))
    with labs.running(folder / "state", str(topology)) as started:
        yield started


def cluster_text(gpu: str, nodes: int = 1, nic: str = '{ model = "ConnectX-8", port_group = "roce" }') -> str:
    return labs.cluster_file("new", cluster="gpu", nodes=nodes, nic=nic, gpu=gpu)


def test_a_cluster_of_new_boards_and_new_nics_is_provisioned(lab: Lab) -> None:
    assert not [board for board in BOARDS if "BLACKWELL" in board.title.upper()]
    spec = load_text(cluster_text(f'{{ profile = "{PROFILE.format(96)}" }}', nodes=4))
    assert "profiles-of-the-hosts" in {each.code for each in check.of_file(spec)}
    vcenter = labs.gateway(lab)
    try:
        report = labs.brought(spec, lab, vcenter)
        assert report.done, report.error
        assert not labs.brought(spec, lab, vcenter).applied
    finally:
        vcenter.close()


def test_hosts_without_the_vgpu_manager_are_named_for_that(tmp_path: Path) -> None:
    text = topology_file("quad-8.0u3").read_text().partition("# A VM of somebody else's")[0]
    topology = tmp_path / "bare.toml"
    topology.write_text(text.replace('vgpu_manager = "535.183.04"\n', ""))
    with labs.running(tmp_path / "state", str(topology)) as bare:
        vcenter = labs.gateway(bare)
        try:
            spec = load_text(labs.cluster_file("bare", cluster="gpu", gpu='{ profile = "A100-40C" }'))
            seen = read_site(RunContext(spec, vcenter, lambda _: None, SystemClock()), why="first")
            assert {host.vgpu_manager for host in seen.hosts} == {""}
            error = compare(spec, seen).placement_error
            assert error is not None
            assert error.hint == RejectReason.MANAGER.value
        finally:
            vcenter.close()


def test_how_many_vgpus_a_vm_may_have_is_asked_of_the_hosts(lab: Lab) -> None:
    vcenter = labs.gateway(lab)
    try:
        for count, most in ((4, None), (5, 16)):
            spec = load_text(
                cluster_text(f'{{ profile = "{PROFILE.format(12)}", count = {count} }}', nic='{ kind = "none" }')
            )
            seen = read_site(RunContext(spec, vcenter, lambda _: None, SystemClock()), why="first")
            assert {host.most_vgpus for host in seen.hosts} == {most}
    finally:
        vcenter.close()
