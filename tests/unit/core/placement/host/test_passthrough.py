"""GPUs handed through whole: by a function that vsml chooses, or by one that vSphere chooses at power-on."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.fakes.pictures import r750xa
from tests.fakes.requirements import cluster, nodes
from tests.unit.core.sites import changed, direct, one_host, only, planned, provisioned, refused
from vsphere_ml.core.model.device_kinds import GpuKind, NicKind
from vsphere_ml.core.model.inventory import PciAddress, PciFunctionDevice, VmRef
from vsphere_ml.core.model.placement import Pairing, WantDynamic, WantPassthrough
from vsphere_ml.core.model.spec import GpuRequest, NicRequest
from vsphere_ml.core.placement.solve import solve
from vsphere_ml.core.plan.changes import AttachDevices, PowerOff

if TYPE_CHECKING:
    from tests.golden import Golden

FIXED = GpuRequest(kind=GpuKind.PASSTHROUGH, device="A100")
DYNAMIC = GpuRequest(kind=GpuKind.DYNAMIC, device="10de:20f1", label="blue")
ADDRESSES = [gpu.address for gpu in r750xa(1).gpus]


def test_each_node_gets_functions_of_its_own_beside_the_nic_that_is_near() -> None:
    placements = solve(cluster(nodes(4, gpu=FIXED, cpus=8)), direct()).placements
    assert sorted(gpu for placement in placements for gpu in placement.gpus) == sorted(ADDRESSES)
    assert {placement.pairing for placement in placements} == {Pairing.PAIRING}
    first = next(want for want in placements[0].target.devices if isinstance(want, WantPassthrough))
    assert (first.address, first.vendor, first.device, first.system_id) == (
        *placements[0].gpus,
        0x10DE,
        0x20F1,
        "system",
    )
    assert placements[0].target.extra_config["pciPassthru.64bitMMIOSizeGB"] == "128"


def test_dynamic_directpath_asks_for_a_kind_and_a_label(golden: Golden) -> None:
    site = direct(labels=("", "", "", "blue"))
    (placement,) = solve(cluster(nodes(1, gpu=DYNAMIC)), site).placements
    assert placement.gpus == (ADDRESSES[3],)
    assert WantDynamic(vendor=0x10DE, device=0x20F1, label="blue") in placement.target.devices
    text = refused(cluster(nodes(2, gpu=DYNAMIC)), site).details[0]
    golden(text)


def test_a_label_that_no_gpu_has_is_said_with_those_there_are() -> None:
    error = refused(cluster(nodes(1, gpu=DYNAMIC)), direct(labels=("left", "left", "right", "")))
    text = "no A100 PCIe 40GB has the hardware label `blue`: there is `left`, `right`, one without a label"
    assert error.details[0].endswith(text)
    assert error.hint.startswith("run `vsml profiles`")


@pytest.mark.parametrize("gpu", [FIXED, DYNAMIC])
def test_a_gpu_that_is_not_enabled_is_said_with_what_to_do(gpu: GpuRequest, golden: Golden) -> None:
    error = refused(cluster(nodes(1, gpu=gpu)), direct(active=False, labels=("blue",) * 4))
    assert (error.code, error.target) == ("placement.infeasible", "node-1")
    golden(error)


def test_what_another_vm_has_is_not_taken(golden: Golden) -> None:
    site = direct()
    host = site.hosts[0]
    held = (replace(host.passthrough_gpus[0], held_by=VmRef("vm-77")), *host.passthrough_gpus[1:])
    site = replace(site, hosts=(replace(host, passthrough_gpus=held),))
    assert ADDRESSES[0] not in solve(cluster(nodes(1, gpu=FIXED)), site).placements[0].gpus
    error = refused(cluster(nodes(4, gpu=FIXED, cpus=8)), site)
    assert (error.code, error.target) == ("placement.infeasible", "node-4")
    golden(error)


@pytest.mark.parametrize("gpu", [FIXED, DYNAMIC])
def test_a_second_look_finds_nothing_to_do(gpu: GpuRequest) -> None:
    spec = cluster(nodes(3, gpu=gpu, cpus=8))
    assert not planned(spec, provisioned(spec, direct(labels=("blue",) * 4)))


def test_a_vm_that_is_off_keeps_its_own_function() -> None:
    spec = cluster(nodes(2, gpu=FIXED, cpus=8))
    done = provisioned(spec, direct())
    off = changed(done, "node-2", powered_on=False)
    host = off.hosts[0]
    freed = tuple(replace(each, held_by=None) for each in host.passthrough_gpus)
    plan = planned(spec, replace(off, hosts=(replace(host, passthrough_gpus=freed),)))
    assert not any(isinstance(change, AttachDevices) for change in plan.changes)


def test_a_vm_with_vgpus_is_not_one_with_passthrough_gpus() -> None:
    vgpus = cluster(nodes(1))
    done = provisioned(vgpus, one_host(groups=()))
    host = done.hosts[0]
    gpus = direct().hosts[0].passthrough_gpus
    both = replace(done, hosts=(replace(host, passthrough_gpus=gpus),))
    plan = planned(cluster(nodes(1, gpu=FIXED)), both)
    assert any(isinstance(change, PowerOff) for change in plan.changes)
    change = only(plan, AttachDevices)
    assert change.remove_names == ("vGPU grid_a100-40c",)
    assert [type(want) for want in change.add] == [WantPassthrough]


def test_a_board_vsml_does_not_know_is_asked_for_by_its_ids() -> None:
    site = direct()
    host = site.hosts[0]
    strange = tuple(replace(each, device=0x2901) for each in host.passthrough_gpus)
    site = replace(site, hosts=(replace(host, passthrough_gpus=strange),))
    asked = GpuRequest(kind=GpuKind.PASSTHROUGH, device="10de:2901")
    (placement,) = solve(cluster(nodes(1, gpu=asked, nic=NicRequest(kind=NicKind.NONE))), site).placements
    assert placement.target.extra_config["pciPassthru.64bitMMIOSizeGB"] == "512"
    assert placement.profile == "10de:2901"


def test_an_address_with_vspheres_prefix_is_the_same_function() -> None:
    spec = cluster(nodes(1, gpu=FIXED))
    done = provisioned(spec, direct())
    settings = next(vm.settings for vm in done.vms if vm.name == "node-1")
    assert settings is not None
    named = tuple(
        replace(device, address=PciAddress(f"Automatic-{device.address}"))
        if isinstance(device, PciFunctionDevice)
        else device
        for device in settings.devices
    )
    assert not planned(spec, changed(done, devices=named))
