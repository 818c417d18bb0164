"""vSphere 9 counts what is left of a device itself, and vsml's own arithmetic comes to the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyVmomi import vim

from tests.integration import labs
from vsphere_ml.cli.wiring.site_wiring import SystemClock
from vsphere_ml.config.load import load_text
from vsphere_ml.core.report.capacity_report import Counter
from vsphere_ml.flows.cluster.destroy import destroy
from vsphere_ml.flows.cluster.provision import provision
from vsphere_ml.flows.profiles import profiles
from vsphere_ml.flows.run_context import RunContext
from vsphere_ml.vsphere.changes.specs import wildcard_backing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vsphere_ml.core.model.spec import ClusterSpec
    from vsphere_ml.flows.profiles import OfferedProfiles
    from vsphere_ml.lab.state import Lab
    from vsphere_ml.vsphere.gateway import Gateway

pytestmark = pytest.mark.lab

# In each cluster something that leaves an odd remainder beside what others have there.
WAYS = {
    "gpu": '{ profile = "A100-10C", count = 2 }',
    "mig": '{ profile = "A100-2-10C" }',
    "mixed": '{ profile = "A100D-10C" }',
    "direct": '{ kind = "dynamic-directpath", device = "10de:20f1", label = "right" }',
}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with labs.running(tmp_path_factory.mktemp("state"), "nine-9.0") as started:
        yield started


def make_spec(cluster: str) -> ClusterSpec:
    return load_text(labs.cluster_file("nine", cluster=cluster, gpu=WAYS[cluster]), "cluster.toml")


def agreed(vcenter: Gateway) -> OfferedProfiles:
    """Return what is offered, after a look whether vCenter counted every bit of it, as vsml does."""
    found = profiles(vcenter, "lab-dc")
    assert (
        {each.counted_by for each in found.hosts} == {each.counted_by for each in found.clusters} == {Counter.VCENTER}
    )
    assert found.differences == ()
    assert [each.name for each in found.clusters if each.free != each.counted] == []
    return found


def test_vcenter_counts_and_vsml_comes_to_the_same(vcenter: Gateway) -> None:
    found = agreed(vcenter)
    assert {each.sharing for each in found.hosts} == {"timeSliced", "mig", "group", "DirectPath"}
    assert any(each.reported is not None and each.reported.consumed for each in found.hosts)
    left = {(each.cluster, each.name): each.free for each in found.clusters}
    assert left["gpu", "grid_a100-40c"] == 5
    assert left["direct", "A100 PCIe 40GB, label left"] == 1


def test_devices_that_have_names_are_listed_whatever_they_are(lab: Lab, vcenter: Gateway) -> None:
    api: Any = vim.DirectPathProfileManager
    dvx = vim.vm.device.VirtualPCIPassthrough.DvxBackingInfo(deviceClass="com.example.fpga")
    configs = {
        "full": api.VmiopDirectPathConfig(vgpuProfile="grid_a100-40c"),
        "new": api.DvxDirectPathConfig(dvxBacking=dvx),
        "some": api.DynamicDirectPathConfig(dynamicDirectPathBacking=wildcard_backing(0x10DE, 0x20F1, "left")),
    }
    session = labs.sign_in(lab)
    for name, config in configs.items():
        wanted = api.CreateSpec(name=name, deviceConfig=config)
        session.content.directPathProfileManager.DirectPathProfileManagerCreate(wanted)
    session.close()
    found = profiles(vcenter, "lab-dc").direct_path
    assert [(each.name, each.kind, each.device) for each in found] == [
        ("full", "Vmiop", "grid_a100-40c"),
        ("new", "Dvx", "com.example.fpga"),
        ("some", "Dynamic", "10de:20f1, label left"),
    ]


@pytest.mark.parametrize("cluster", WAYS)
def test_the_counts_agree_when_more_is_taken(cluster: str, vcenter: Gateway) -> None:
    before = sum(each.free or 0 for each in agreed(vcenter).hosts)
    spec = make_spec(cluster)
    try:
        made = provision(RunContext(spec, vcenter, lambda _: None, SystemClock()), approve=lambda _: True)
        assert made.done, made.error
        assert sum(each.free or 0 for each in agreed(vcenter).hosts) < before
    finally:
        assert destroy(RunContext(spec, vcenter, lambda _: None, SystemClock()), approve=lambda _: True).done


def test_an_older_vcenter_is_not_asked(tmp_path_factory: pytest.TempPathFactory) -> None:
    with labs.running(tmp_path_factory.mktemp("older")) as lab:
        made = labs.gateway(lab)
        found = profiles(made, "lab-dc")
        made.close()
    assert {each.counted_by for each in found.hosts} == {Counter.VSML}
    assert {each.free for each in found.hosts if each.name == "grid_a100-40c"} == {3, 4}
