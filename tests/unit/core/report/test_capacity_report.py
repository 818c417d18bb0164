"""What hosts offer and what is free of it, each as if nothing else were taken."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.fakes.pictures import A100_GROUP, quad_8u3
from tests.fakes.requirements import cluster
from tests.unit.core.placement.test_shares import HALF, PAIR, mig_host, small
from tests.unit.core.sites import direct, one_host, provisioned
from vsphere_ml.core.errors import NotPossible
from vsphere_ml.core.model.inventory import (
    ComponentKind,
    DeviceGroup,
    GpuUse,
    GroupComponent,
    Inventory,
    VgpuProfile,
    VmRef,
)
from vsphere_ml.core.report.capacity_report import DIRECT_PATH, GROUP, list_capacity


def free(site: Inventory, name: str, host: str = "*") -> list[int | None]:
    return [each.free for each in list_capacity(site, host) if each.name == name]


def test_a_gpu_in_use_is_not_free_whole_and_a_half_of_it_is_counted() -> None:
    site = provisioned(cluster(small(1, HALF)), one_host(groups=()))
    assert free(site, "grid_a100-40c") == [3]
    assert free(site, "grid_a100-20c") == [7]
    assert free(site, "grid_a100-10c") == [12]


def test_every_matching_host_is_told_and_others_are_not() -> None:
    site = quad_8u3()
    assert free(site, "grid_a100-40c") == [4, 3, 4, 4]
    assert free(site, "grid_a100-40c", "ESX-02*") == [3]
    assert free(site, "grid_a100-40c", "esx-02") == [3]


def test_a_name_that_no_host_has_is_refused_with_those_there_are() -> None:
    with pytest.raises(NotPossible) as refused:
        list_capacity(quad_8u3(), "nobody*")
    assert refused.value.code == "site.not-found"
    assert "`esx-01.lab.test`" in refused.value.hint


def test_mig_and_sizes_are_as_nvidias_tables_have_them() -> None:
    (third,) = [each for each in list_capacity(mig_host()) if each.name == "grid_a100-3-20c"]
    assert (third.sharing, third.framebuffer_mib, third.per_gpu, third.free) == ("mig", 20480, 2, 8)
    (eighth,) = [each for each in list_capacity(one_host()) if each.name == "grid_a100-8c"]
    assert (eighth.per_gpu, eighth.per_gpu_mixed) == (5, 4)


def test_a_profile_whose_name_tells_no_size_has_no_number() -> None:
    site = one_host(profiles=(VgpuProfile(name="nvidia_b200x"),))
    (strange,) = [each for each in list_capacity(site) if each.sharing != GROUP]
    assert (strange.free, strange.per_gpu) == (None, None)


def test_a_profile_of_no_table_is_counted_by_the_largest_of_its_board() -> None:
    site = one_host(profiles=(VgpuProfile(name="nvidia_b200x-180c"), VgpuProfile(name="nvidia_b200x-90c")))
    found = {each.name: (each.free, each.per_gpu) for each in list_capacity(site) if each.sharing != GROUP}
    assert found == {"nvidia_b200x-180c": (0, 1), "nvidia_b200x-90c": (0, 2)}  # none of its GPUs is of that board


def test_whole_gpus_are_counted_by_label() -> None:
    site = direct(labels=("blue", "blue", "", ""))
    host = site.hosts[0]
    held = (replace(host.passthrough_gpus[0], held_by=VmRef("vm-77")), *host.passthrough_gpus[1:])
    found = list_capacity(replace(site, hosts=(replace(host, passthrough_gpus=held),)))
    assert {(each.name, each.sharing): each.free for each in found} == {
        ("A100 PCIe 40GB", DIRECT_PATH): 2,
        ("A100 PCIe 40GB, label blue", DIRECT_PATH): 1,
    }


def test_a_host_in_maintenance_has_nothing_free() -> None:
    assert set(free(one_host(maintenance=True), "grid_a100-40c")) == {0}


def test_device_groups_are_counted_as_often_as_their_gpus_and_functions_are_free() -> None:
    def groups(**knobs: object) -> dict[str, int | None]:
        return {
            each.name: each.free
            for each in list_capacity(one_host(groups=(A100_GROUP, PAIR), **knobs))
            if each.sharing == GROUP
        }

    host = one_host().hosts[0]
    used = GpuUse(vm=VmRef("vm-77"), vm_name="etl-7", profile="grid_a100-10c")
    one_taken = (replace(host.gpus[0], used_by=(used,)), *host.gpus[1:])
    few = tuple(replace(nic, vfs=1) for nic in host.nics)
    none = tuple(replace(nic, sriov_enabled=False) for nic in host.nics)
    assert groups() == {A100_GROUP.name: 4, PAIR.name: 2}
    assert groups(gpus=one_taken) == {A100_GROUP.name: 3, PAIR.name: 1}
    assert groups(nics=few) == {A100_GROUP.name: 2, PAIR.name: 2}
    assert groups(nics=none) == {A100_GROUP.name: 0, PAIR.name: 2}
    assert groups(maintenance=True) == {A100_GROUP.name: 0, PAIR.name: 0}


def test_a_group_of_a_kind_that_nobody_knows_is_not_counted() -> None:
    strange = DeviceGroup(
        name="Acme:2@thing", components=(GroupComponent(kind=ComponentKind.DVX, device_name="thing"),)
    )
    assert free(one_host(groups=(strange,)), strange.name) == [None]


def test_a_group_with_a_component_of_an_unknown_kind_is_not_counted() -> None:
    gpu = next(part for part in A100_GROUP.components if part.kind is ComponentKind.VGPU)
    strange = DeviceGroup(
        name="Acme:1@gpu:1@quantum", components=(gpu, GroupComponent(kind=ComponentKind("quantumNic"), device_name="q"))
    )
    assert free(one_host(groups=(strange,)), strange.name) == [None]


def test_what_a_vm_needs_and_whether_nvlink_joins_it_is_told() -> None:
    row, half, *_ = list_capacity(one_host())
    assert (row.name, row.nvlink, row.mmio_gib) == ("grid_a100-40c", True, 128)
    assert (half.name, half.nvlink, half.mmio_gib) == ("grid_a100-20c", False, 128)
