"""Every change has words, as what happened and as what is missing."""

from __future__ import annotations

import typing
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.fakes.ovf import deployment
from tests.fakes.pictures import A100_GROUP, CLUSTER, ROCE, quad_8u3
from tests.fakes.requirements import cluster
from vsphere_ml.core.model.inventory import PciAddress, PoolRef, SwitchRef
from vsphere_ml.core.model.placement import WantGroup, WantNic, WantPassthrough, WantSriov, WantVgpu
from vsphere_ml.core.nodes.firstboot import Customization
from vsphere_ml.core.placement.solve import solve
from vsphere_ml.core.plan.changes import (
    AttachDevices,
    Change,
    CloneVm,
    CreateFolder,
    CustomizeGuest,
    DeleteFolder,
    DeleteRule,
    DeleteVm,
    MakeRule,
    Marks,
    MarkVm,
    MoveToFolder,
    MoveToPool,
    NewMac,
    PowerOff,
    PowerOn,
    SetSettings,
    SetSwitchMtu,
    SettingDrift,
    UpgradeHardware,
)
from vsphere_ml.core.plan.describe import describe, device_name, drift_of, object_name
from vsphere_ml.core.plan.diff import diff

if TYPE_CHECKING:
    from tests.golden import Golden

PLAN = diff(cluster(1), solve(cluster(1), quad_8u3()), quad_8u3())
CLONE = next(change for change in PLAN.changes if isinstance(change, CloneVm))
MARKS = Marks(cluster="train", node="node-1")
NIC = PciAddress("0000:3d:00.0")

WORDS: list[tuple[Change, str, str, tuple[str, ...]]] = [
    (CreateFolder(path="train", marks=MARKS), "making of folder train", "folder train", ("is not there",)),
    (deployment(CLONE, "t-5eed"), "deployment of template t-5eed", "template t-5eed", ("is not there",)),
    (CLONE, "clone of node-1", "node-1", ("is not there",)),
    (
        MarkVm(vm="node-1", marks=MARKS),
        "ownership mark of node-1",
        "node-1",
        ("its ownership attribute is not set",),
    ),
    (
        MoveToFolder(vm="node-1", path="ml", was=""),
        "change of folder of node-1",
        "node-1",
        ("the data centre's VM folder → folder ml",),
    ),
    (
        MoveToPool(vm="node-1", pool=PoolRef("resgroup-2"), pool_name="ml", was="Resources"),
        "change of resource pool of node-1",
        "node-1",
        ("resource pool Resources → ml",),
    ),
    (
        UpgradeHardware(vm="node-1", version=20),
        "hardware upgrade of node-1",
        "node-1",
        ("hardware version lower → 20",),
    ),
    (
        SetSettings(vm="node-1", target=CLONE.target, drift=(SettingDrift("vCPUs", "4", "16"),)),
        "settings of node-1",
        "node-1",
        ("vCPUs 4 → 16",),
    ),
    (
        AttachDevices(vm="node-1", add=(WantVgpu(profile="grid_a100-40c"),), remove=(7,), remove_names=("vGPU x",)),
        "devices of node-1",
        "node-1",
        ("vGPU grid_a100-40c is missing", "unexpected vGPU x"),
    ),
    (
        CustomizeGuest(vm="node-1", customization=Customization(host_name="node-1", domain="x")),
        "customization of node-1",
        "node-1",
        ("its guest's customization is not set",),
    ),
    (NewMac(vm="node-1", key=1, mac="aa"), "new MAC of node-1", "node-1", ("its MAC aa is another VM's too",)),
    (MakeRule(cluster=CLUSTER, name="r", vms=("a",)), "making of rule r", "rule r", ("is not there",)),
    (MakeRule(cluster=CLUSTER, name="r", vms=("a",), key=3), "making of rule r", "rule r", ("differs",)),
    (
        SetSwitchMtu(switch=SwitchRef("dvs-1"), name="dvs", mtu=9000, was=1500),
        "MTU of switch dvs",
        "switch dvs",
        ("MTU 1500 → 9000",),
    ),
    (PowerOn(vm="node-1"), "power-on of node-1", "node-1", ("is powered off",)),
    (PowerOff(vm="node-1"), "power-off of node-1", "node-1", ("must be powered off to be changed",)),
    (DeleteVm(vm="node-1"), "deletion of node-1", "node-1", ("is still there",)),
    (DeleteRule(cluster=CLUSTER, name="r", key=3), "deletion of rule r", "rule r", ("is still there",)),
    (DeleteFolder(path="train"), "deletion of folder train", "folder train", ("is still there",)),
]


@pytest.mark.parametrize(("change", "noun", "thing", "drift"), WORDS)
def test_a_change_in_words(change: Change, noun: str, thing: str, drift: tuple[str, ...]) -> None:
    assert (describe(change), object_name(change), drift_of(change)) == (noun, thing, drift)


def test_no_change_is_left_out_here() -> None:
    assert {type(words[0]) for words in WORDS} == set(typing.get_args(Change))


def test_devices_are_called_as_vsphere_calls_them(golden: Golden) -> None:
    wanted = (
        WantVgpu(profile="grid_a100-40c"),
        WantGroup(group=replace(A100_GROUP, name="Nvidia:2@x")),
        WantSriov(physical_function=NIC, network=ROCE, network_name="roce"),
        WantPassthrough(address=NIC, vendor=1, device=2, system_id="", name="ConnectX-6 Dx"),
        WantNic(network=ROCE, network_name="roce"),
    )
    golden([device_name(each) for each in wanted])
