"""What hosts offer and what is free of it, each as if nothing else were taken."""

from __future__ import annotations

from dataclasses import replace

from tests.fakes.pictures import quad_8u3
from tests.fakes.wishes import cluster
from tests.unit.core.sites import one_host, provisioned
from tests.unit.core.test_shares import HALF, mig_host, small
from tests.unit.core.test_whole import direct
from vsphere_ml.core.inventory import Inventory, VgpuProfile, VmRef
from vsphere_ml.core.stock import DIRECT_PATH, stock


def free(site: Inventory, name: str, host: str = "*") -> list[int | None]:
    return [each.free for each in stock(site, host) if each.name == name]


def test_a_gpu_in_use_is_not_free_whole_and_a_half_of_it_is_counted() -> None:
    site = provisioned(cluster(small(1, HALF)), one_host(groups=()))
    assert free(site, "grid_a100-40c") == [3]
    assert free(site, "grid_a100-20c") == [7]
    assert free(site, "grid_a100-10c") == [12]


def test_every_matching_host_is_told_and_others_are_not() -> None:
    site = quad_8u3()
    assert free(site, "grid_a100-40c") == [4, 3, 4, 4]
    assert free(site, "grid_a100-40c", "ESX-02*") == [3]
    assert stock(site, "nobody*") == ()


def test_mig_and_sizes_are_as_nvidias_tables_have_them() -> None:
    (third,) = [each for each in stock(mig_host()) if each.name == "grid_a100-3-20c"]
    assert (third.sharing, third.framebuffer_mib, third.per_gpu, third.free) == ("mig", 20480, 2, 8)
    (eighth,) = [each for each in stock(one_host()) if each.name == "grid_a100-8c"]
    assert (eighth.per_gpu, eighth.per_gpu_mixed) == (5, 4)


def test_a_profile_of_no_table_is_told_without_a_number() -> None:
    site = one_host(profiles=(VgpuProfile(name="nvidia_b200x-180c"),))
    (strange,) = stock(site)
    assert (strange.free, strange.per_gpu) == (None, None)


def test_whole_gpus_are_counted_by_label() -> None:
    site = direct(labels=("blue", "blue", "", ""))
    host = site.hosts[0]
    held = (replace(host.whole_gpus[0], held_by=VmRef("vm-77")), *host.whole_gpus[1:])
    found = stock(replace(site, hosts=(replace(host, whole_gpus=held),)))
    assert {(each.name, each.sharing): each.free for each in found} == {
        ("A100 PCIe 40GB", DIRECT_PATH): 2,
        ("A100 PCIe 40GB, label blue", DIRECT_PATH): 1,
    }


def test_a_host_in_maintenance_has_nothing_free() -> None:
    assert set(free(one_host(maintenance=True), "grid_a100-40c")) == {0}
