"""The distributed switch under the fast NICs: what is too small is reported, or changed where that was asked for."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.fakes.pictures import DVS, ROCE, quad_8u3
from tests.fakes.requirements import cluster, nodes
from tests.unit.core.applied import applied
from tests.unit.core.sites import each_host, kinds, planned
from vsphere_ml.core.model.device_kinds import NicKind
from vsphere_ml.core.model.inventory import Inventory, NetworkRef, Pvrdma, SwitchRef
from vsphere_ml.core.model.spec import NicRequest, RoceSpec
from vsphere_ml.core.plan.changes import CreateFolder, SetSwitchMtu

if TYPE_CHECKING:
    from tests.golden import Golden
    from vsphere_ml.core.model.spec import ClusterSpec

RAISED = RoceSpec(raise_mtu=True)
PVRDMA = NicRequest(kind=NicKind.PVRDMA, port_group="roce")


def with_mtu(mtu: int, site: Inventory | None = None) -> Inventory:
    site = site or quad_8u3(taken=False)
    return replace(site, switches=tuple(replace(each, mtu=mtu) for each in site.switches))


def codes(spec: ClusterSpec, site: Inventory) -> list[str]:
    return [each.code for each in planned(spec, site).diagnostics]


def test_a_switch_of_too_small_an_mtu_is_a_finding_with_the_command_to_type(golden: Golden) -> None:
    plan = planned(cluster(2), with_mtu(1500))
    (finding,) = plan.diagnostics
    assert (finding.code, finding.target) == ("network.mtu", "dvs-gpu")
    golden(finding)
    assert SetSwitchMtu not in kinds(plan)


def test_it_is_raised_before_anything_else_when_that_was_asked_for_and_then_there_is_nothing_to_do(
    golden: Golden,
) -> None:
    spec = cluster(2, roce=RAISED)
    plan = planned(spec, with_mtu(1500))
    assert next(plan.changes) == SetSwitchMtu(switch=DVS, name="dvs-gpu", mtu=9000, was=1500)
    assert kinds(plan)[1] is CreateFolder
    golden(plan.notes[0])
    done = applied(plan.changes, with_mtu(1500))
    again = planned(spec, done)
    assert not again
    assert again.diagnostics == ()


@pytest.mark.parametrize(
    ("most", "roce", "found"),
    [
        (9000, RoceSpec(mtu=9190, raise_mtu=True), ["network.max-mtu"]),
        (None, RoceSpec(mtu=9190, raise_mtu=True), ["network.max-mtu"]),
        (9000, RoceSpec(mtu=9190), ["network.max-mtu"]),
        (9190, RoceSpec(mtu=9190, raise_mtu=True), []),
        (9190, RoceSpec(mtu=9190), ["network.mtu"]),
    ],
)
def test_no_more_is_asked_of_a_switch_than_it_takes(most: int | None, roce: RoceSpec, found: list[str]) -> None:
    site = with_mtu(1500)
    site = replace(site, switches=tuple(replace(each, max_mtu=most) for each in site.switches))
    plan = planned(cluster(2, roce=roce), site)
    assert [each.code for each in plan.diagnostics] == found
    assert (SetSwitchMtu in kinds(plan)) == (found == [])
    assert bool(plan.drift) == (roce.raise_mtu and bool(found))


def with_ports(free: int | None, ports: int | None = 8) -> Inventory:
    site = quad_8u3(taken=False)
    of_roce = (replace(each, ports=ports, free_ports=free) if each.ref == ROCE else each for each in site.networks)
    return replace(site, networks=tuple(of_roce))


@pytest.mark.parametrize(("free", "found"), [(1, ["network.ports"]), (2, []), (None, [])])
def test_a_port_group_with_too_few_ports_for_the_new_vms_is_a_finding(free: int | None, found: list[str]) -> None:
    assert codes(cluster(2), with_ports(free)) == found


def test_vms_that_stand_need_no_further_port() -> None:
    spec = cluster(2)
    done = applied(planned(spec, with_ports(2)).changes, with_ports(2))
    full = (replace(each, free_ports=0) if each.ref == ROCE else each for each in done.networks)
    assert codes(spec, replace(done, networks=tuple(full))) == []


def test_a_larger_mtu_is_never_lowered() -> None:
    plan = planned(cluster(2, roce=replace(RAISED, mtu=4200)), with_mtu(9000))
    assert SetSwitchMtu not in kinds(plan)
    assert plan.diagnostics == ()


@pytest.mark.parametrize("kind", [NicKind.NONE, NicKind.PASSTHROUGH])
def test_a_switch_that_no_fast_nic_uses_is_left_alone(kind: NicKind) -> None:
    site = with_mtu(1500)
    ports = tuple(replace(each, passthrough=True) for each in site.hosts[0].nics)
    spec = cluster(nodes(1, nic=NicRequest(kind=kind)), roce=RAISED)
    plan = planned(spec, each_host(site, nics=ports))
    assert SetSwitchMtu not in kinds(plan)
    assert plan.diagnostics == ()


def pvrdma_site(*uplinks: str, rdma: str | None = "vmrdma0") -> Inventory:
    site = quad_8u3(hosts=1, taken=False)
    ports = tuple(replace(each, rdma=rdma) for each in site.hosts[0].nics)
    host = replace(site.hosts[0], nics=ports, pvrdma=Pvrdma(vmknic="vmk1", firewall=True))
    switch = replace(site.switches[0], uplinks={host.ref: uplinks})
    return replace(site, hosts=(host,), switches=(switch,))


@pytest.mark.parametrize(
    "site",
    [
        pvrdma_site("vmnic4", "vmnic5"),
        pvrdma_site(),
        pvrdma_site("vmnic4", rdma=None),
    ],
)
def test_pvrdma_wants_one_rdma_nic_as_the_only_uplink(site: Inventory, golden: Golden) -> None:
    (finding,) = planned(cluster(nodes(1, nic=PVRDMA)), site).diagnostics
    assert (finding.code, finding.target) == ("network.uplinks", "esx-01.lab.test")
    golden(finding.message)


def tagged(vmknic: str, **adapters: str) -> Inventory:
    """Return a PVRDMA site whose host has VMkernel adapters on these port groups, one of them tagged."""
    site = pvrdma_site("vmnic4")
    other = replace(site.networks[0], ref=NetworkRef("dvportgroup-8"), name="other", switch_ref=SwitchRef("dvs-2"))
    seen = Pvrdma(
        vmknic=vmknic, firewall=True, adapters=tuple((each, NetworkRef(group)) for each, group in adapters.items())
    )
    host = replace(site.hosts[0], pvrdma=seen)
    return replace(site, hosts=(host,), networks=(*site.networks, other))


def test_a_vmkernel_adapter_on_another_switch_is_a_finding_that_names_one_that_is_there() -> None:
    spec = cluster(nodes(1, nic=PVRDMA))
    (finding,) = planned(spec, tagged("vmk2", vmk1=ROCE, vmk2="dvportgroup-8")).diagnostics
    assert (finding.code, finding.target) == ("network.vmknic", "esx-01.lab.test")
    assert "Net.PVRDMAVmknic vmk1`" in finding.hint
    assert planned(spec, tagged("vmk1", vmk1=ROCE, vmk2="dvportgroup-8")).diagnostics == ()


def test_uplinks_as_pvrdma_wants_them_and_those_of_functions_are_no_finding() -> None:
    assert codes(cluster(nodes(1, nic=PVRDMA)), pvrdma_site("vmnic4")) == []
    assert codes(cluster(1), pvrdma_site("vmnic4", "vmnic5")) == []


def test_fast_nics_on_different_vlans_are_a_finding() -> None:
    site = quad_8u3(taken=False)
    other = replace(
        next(each for each in site.networks if each.ref == ROCE),
        name="roce-b",
        ref=NetworkRef("dvportgroup-9"),
        vlan=201,
    )
    site = replace(site, networks=(*site.networks, other))
    site = each_host(site, networks=frozenset({*site.hosts[0].networks, "dvportgroup-9"}))
    both = (*nodes(1), replace(nodes(2)[1], nic=NicRequest(port_group="roce-b")))
    (finding,) = planned(cluster(both), site).diagnostics
    assert finding.code == "network.vlans"
    assert "`roce` on VLAN 200, `roce-b` on VLAN 201" in finding.message
