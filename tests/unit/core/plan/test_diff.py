from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.fakes.pictures import (
    quad_8u3,
)
from tests.fakes.requirements import cluster, nodes
from tests.unit.core.applied import applied
from tests.unit.core.sites import changed, kinds, one_node, only, planned, seen
from vsphere_ml.core.errors import NotPossible
from vsphere_ml.core.model.marks import CLUSTER_KEY
from vsphere_ml.core.model.spec import CloneKind, Latency
from vsphere_ml.core.placement.solve import solve
from vsphere_ml.core.plan.changes import (
    AttachDevices,
    CloneVm,
    CreateFolder,
    Marks,
    MarkVm,
    PowerOff,
    PowerOn,
    SetSettings,
    SettingDrift,
    UpgradeHardware,
)
from vsphere_ml.core.units import Bytes, gib

if TYPE_CHECKING:
    from tests.golden import Golden


def test_a_new_node_is_cloned_raised_given_its_devices_and_started() -> None:
    plan = planned(cluster(1), quad_8u3())
    assert [stage.title for stage in plan.stages] == ["folder", "clone", "hardware version", "devices", "power on"]
    assert only(plan, CreateFolder) == CreateFolder(path="train", marks=Marks(cluster="train"))
    clone = only(plan, CloneVm)
    assert (clone.marks, clone.devices, clone.snapshot) == (Marks(cluster="train", node="node-1"), False, None)
    assert only(plan, UpgradeHardware).version == 20
    assert only(plan, AttachDevices).add == clone.target.devices


def test_a_template_that_is_new_enough_is_cloned_with_all_devices() -> None:
    plan = planned(cluster(1), quad_8u3(template_version=20))
    assert kinds(plan) == [CreateFolder, CloneVm, PowerOn]
    assert only(plan, CloneVm).devices


def test_a_linked_clone_names_the_snapshot() -> None:
    spec = cluster(1)
    linked = replace(spec, source=replace(spec.source, clone=CloneKind.LINKED))
    assert only(planned(linked, quad_8u3()), CloneVm).snapshot == "snapshot-1"


def test_a_finished_node_leaves_nothing_to_do() -> None:
    plan = planned(cluster(1), one_node())
    assert not plan
    assert plan.placements[0].existing is not None


@pytest.mark.parametrize(
    "knobs",
    [
        {"cpus": 4},
        {"memory": gib(8)},
        {"memory_locked": False},
        {"memory_reservation": Bytes(0)},
        {"cpu_reservation_mhz": 100},
        {"firmware": "bios"},
        {"secure_boot": True},
        {"latency": "high"},
        {"cpu_hot_add": True},
        {"memory_hot_add": True},
    ],
)
def test_every_setting_that_differs_is_drift(knobs: dict[str, object], golden: Golden) -> None:
    plan = planned(cluster(1), changed(one_node(), "node-1", **knobs))
    golden(str(each) for each in only(plan, SetSettings).drift)
    assert kinds(plan) == [PowerOff, SetSettings, PowerOn]
    assert plan.interrupting == (PowerOff(vm="node-1"),)


def test_only_our_own_keys_are_compared_whatever_their_case() -> None:
    site = one_node()
    keys = dict(seen(site).extra_config)
    keys["somebody.elses"] = "1"
    keys["pciPassthru.use64bitMMIO"] = "true"
    keys["PCIPASSTHRU.allowP2P"] = keys.pop("pciPassthru.allowP2P")
    assert not planned(cluster(1), changed(site, extra_config=keys))
    del keys["pciPassthru.RelaxACSforP2P"]
    keys["pciPassthru.64bitMMIOSizeGB"] = "64"
    assert [str(each) for each in only(planned(cluster(1), changed(site, extra_config=keys)), SetSettings).drift] == [
        "pciPassthru.64bitMMIOSizeGB 64 → 128",
        "pciPassthru.RelaxACSforP2P not set → TRUE",
    ]


def test_a_key_that_is_no_longer_wanted_is_taken_away() -> None:
    spec = cluster(nodes(1, peer_to_peer=False))
    plan = planned(spec, one_node())
    assert [str(each) for each in only(plan, SetSettings).drift] == [
        "pciPassthru.RelaxACSforP2P TRUE → not set",
        "pciPassthru.allowP2P TRUE → not set",
    ]
    done = applied(plan.changes, one_node())
    assert not planned(spec, done)


def test_a_disk_grows_while_the_vm_runs_and_never_shrinks(golden: Golden) -> None:
    plan = planned(cluster(nodes(1, disk=gib(100))), one_node())
    assert only(plan, SetSettings).drift == (SettingDrift("disk", "40 GiB", "100 GiB"),)
    assert kinds(plan) == [SetSettings]
    small = planned(cluster(nodes(1, disk=gib(20))), one_node())
    assert not small
    (finding,) = small.diagnostics
    assert finding.code == "vm.disk-larger"
    golden(finding)
    assert finding.hint == 'set nodes.disk = "40GiB"'


def test_latency_raised_later_reserves_the_cpu(golden: Golden) -> None:
    plan = planned(cluster(nodes(1, latency=Latency.HIGH)), one_node())
    golden(str(each) for each in only(plan, SetSettings).drift)


def test_a_clone_without_its_mark_is_marked_and_finished() -> None:
    site = quad_8u3(hosts=1, taken=False)
    changes = list(planned(cluster(1), site).changes)[:2]
    cut = changed(applied(changes, site), cluster_mark=None, node_mark=None)
    plan = planned(cluster(1), cut)
    assert only(plan, MarkVm).marks == Marks(cluster="train", node="node-1")
    assert kinds(plan) == [MarkVm, UpgradeHardware, AttachDevices, PowerOn]
    assert not planned(cluster(1), applied(plan.changes, cut))


def test_a_clone_whose_extra_config_names_another_cluster_is_not_ours(golden: Golden) -> None:
    spec = cluster(1)
    site = quad_8u3(hosts=1, taken=False)
    cut = applied(list(planned(spec, site).changes)[:2], site)
    keys = {**seen(cut).extra_config, CLUSTER_KEY: "other"}
    with pytest.raises(NotPossible) as caught:
        solve(spec, changed(cut, cluster_mark=None, node_mark=None, extra_config=keys))
    assert (caught.value.code, caught.value.target) == ("vm.unmanaged", "node-1")
    golden(caught.value)


def test_a_newer_virtual_hardware_is_kept() -> None:
    plan = planned(cluster(1), changed(one_node(), hardware_version=21))
    assert not plan
    assert plan.placements[0].target.hardware_version == 21


def test_a_vm_that_somebody_powered_off_is_powered_on() -> None:
    off = applied([PowerOff(vm="node-1")], one_node())
    assert kinds(planned(cluster(1), off)) == [PowerOn]


def test_each_missing_folder_of_a_path_is_a_change_of_its_own() -> None:
    site = quad_8u3()
    spec = cluster(1, location=replace(cluster(1).location, folder="ml/train"))
    paths = [each.path for each in planned(spec, site).changes if isinstance(each, CreateFolder)]
    assert paths == ["ml", "ml/train"]
