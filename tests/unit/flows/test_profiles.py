"""Who counts what is left: vCenter where it does, else vsml; and where the two differ, it is told."""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING, TypeAlias

from rich.console import Console

from tests.fakes.pictures import CLUSTER, GROUP, quad_8u3
from tests.fakes.site import FakeVCenter
from tests.unit.core.sites import direct, one_host
from vsphere_ml.cli.views.site import catalogue
from vsphere_ml.cli.views.site import profiles as view
from vsphere_ml.core.catalog.boards import BY_CODE
from vsphere_ml.core.codec import encode
from vsphere_ml.core.model.device_counts import Ask, Count, DirectPathProfile, InCluster, OnHost
from vsphere_ml.core.model.inventory import HostRef
from vsphere_ml.core.report.capacity_report import Counter, asks, list_capacity
from vsphere_ml.flows.profiles import profiles

if TYPE_CHECKING:
    from tests.golden import Golden
    from vsphere_ml.core.model.device_counts import Place
    from vsphere_ml.core.model.inventory import Inventory
    from vsphere_ml.flows.profiles import OfferedProfiles

Told: TypeAlias = "dict[tuple[Place, Ask], Count]"
WHOLE = Ask(profile="grid_a100-40c")
FIRST, SECOND = OnHost(HostRef("host-1")), OnHost(HostRef("host-2"))


def count(remaining: int, *, reserved: int = 0) -> Count:
    return Count(consumed=4 - remaining, remaining=remaining, most=4, reserved=reserved)


def of(found: OfferedProfiles, host: int = 0) -> tuple[int | None, str]:
    (each,) = [each for each in found.hosts if each.name == WHOLE.profile and each.host_ref == f"host-{host + 1}"]
    return each.free, each.counted_by


def asked(site: Inventory, *, clusters: bool = True) -> dict[object, set[Ask]]:
    return {place: set(each) for place, each in asks(list_capacity(site), site, clusters=clusters).items()}


def test_vsml_counts_where_vcenter_does_not() -> None:
    found = profiles(FakeVCenter(quad_8u3()), None)
    assert {each.counted_by for each in found.hosts} == {each.counted_by for each in found.clusters} == {Counter.VSML}
    assert found.differences == ()


def test_vcenters_count_goes_before_vsmls_and_the_difference_is_told(golden: Golden) -> None:
    found = profiles(FakeVCenter(quad_8u3(), told={(FIRST, WHOLE): count(1), (SECOND, WHOLE): count(3)}), None)
    assert [of(found, host) for host in range(3)] == [(1, "vCenter"), (3, "vCenter"), (4, "vsml")]
    golden(found.differences)


def test_a_device_that_has_a_name_is_shown_by_it_also_of_a_kind_that_is_not_known() -> None:
    named = (
        DirectPathProfile(name="full", vendor="NVIDIA", kind="Vmiop", device="grid_a100-40c"),
        DirectPathProfile(name="new", vendor="", kind="Optical", device=""),
    )
    found = profiles(FakeVCenter(quad_8u3(), named_devices=named), None)
    console = Console(width=200, record=True, file=StringIO())
    console.print(view.text(found))
    shown = [each.split() for each in console.export_text().splitlines()]
    assert ["full", "NVIDIA", "Vmiop", "grid_a100-40c"] in shown
    assert ["new", "-", "Optical", "not", "known"] in shown
    assert [each.name for each in found.direct_path] == ["full", "new"]


def test_a_cluster_is_counted_by_vcenter_or_summed_up() -> None:
    site = quad_8u3()
    summed = profiles(FakeVCenter(site, told={(FIRST, WHOLE): count(1)}), None)
    offered_profiles = profiles(FakeVCenter(site, told={(InCluster(CLUSTER), WHOLE): count(2, reserved=2)}), None)
    (by_hosts,) = [each for each in summed.clusters if each.name == WHOLE.profile]
    (by_cluster,) = [each for each in offered_profiles.clusters if each.name == WHOLE.profile]
    assert (by_hosts.free, by_hosts.counted, by_hosts.counted_by) == (12, 15, Counter.VSML)
    assert (by_cluster.free, by_cluster.counted, by_cluster.counted_by) == (2, 15, Counter.VCENTER)


def test_what_one_asks_with_a_glob_is_not_asked_of_whole_clusters() -> None:
    event: Told = {(InCluster(CLUSTER), WHOLE): count(2)}
    found = profiles(FakeVCenter(quad_8u3(), told=event), None, "esx-01*")
    assert [each.free for each in found.clusters if each.name == WHOLE.profile] == [4]


def test_profiles_and_groups_are_asked_for_and_hosts_in_maintenance_are_not_asked() -> None:
    site = one_host()
    assert asked(site)[FIRST] == asked(site)[InCluster(CLUSTER)] > {WHOLE, Ask(group=GROUP)}
    assert asked(site, clusters=False).keys() == {FIRST}
    assert asked(one_host(maintenance=True)) == asked(one_host(connected=False)) == {}


def test_gpus_without_a_label_are_not_asked_for_beside_labelled_ones() -> None:
    def a100(label: str) -> Ask:
        return Ask(vendor=0x10DE, device=0x20F1, label=label)

    assert asked(direct())[FIRST] == {a100("")}
    assert asked(direct(labels=("blue", "blue", "", "")))[FIRST] == {a100("blue")}


def test_the_tables_say_who_counted_what_is_reserved_and_what_differs(golden: Golden) -> None:
    event: Told = {(FIRST, WHOLE): count(1), (InCluster(CLUSTER), WHOLE): count(2, reserved=2)}
    found = profiles(FakeVCenter(one_host(), told=event), None)
    data = encode(found)
    assert data["differences"] == list(found.differences) != []
    assert data["hosts"][0]["reported"] == {"consumed": 3, "remaining": 1, "most": 4, "reserved": 0}
    rendered = _rendered(found)
    golden(rendered)
    assert f"! {found.differences[0]}" in rendered


def _rendered(found: OfferedProfiles) -> str:
    console = Console(width=200)
    with console.capture() as captured:
        console.print(view.text(found))
    return captured.get()


def test_nvidias_tables_are_shown_without_a_site() -> None:
    rows = {each["profile"]: each for each in catalogue.data([BY_CODE["A100X"], BY_CODE["A30"], BY_CODE["L40S"]])}
    assert rows["A100X-40C"]["nvlink"] == "switch"
    assert rows["A30-24C"]["nvlink"] == "pair"
    assert rows["L40S-48C"]["nvlink"] is rows["A100X-20C"]["nvlink"] is None
    assert (rows["A100X-8C"]["per_gpu"], rows["A100X-8C"]["per_gpu_mixed"]) == (5, 4)
    assert rows["A100X-3-20C"]["mig"] == {"compute": 3, "memory": 4, "starts": (0, 4)}
    assert (rows["A100X-1-10C"]["from_esxi"], rows["A100X-1-5C"]["from_esxi"]) == ("8.0.3", None)
    assert {each["mmio_gib"] for name, each in rows.items() if name.startswith("A30-")} == {64}
