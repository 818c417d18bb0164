"""Hosts made ready for RoCE and PVRDMA: driver options as one string, the tag, the firewall."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.fakes.pictures import ROCE, quad_8u3, vm
from tests.fakes.requirements import node, nodes
from tests.fakes.site import Cut
from tests.unit.flows.hosts.test_host_configuration import SRIOV, Rig, rig
from vsphere_ml.core.errors import NotPossible
from vsphere_ml.core.model.device_kinds import NicKind
from vsphere_ml.core.model.inventory import HostRef, Inventory, Pvrdma
from vsphere_ml.core.model.spec import HostConfigKind, NicRequest, RoceSpec

if TYPE_CHECKING:
    from tests.golden import Golden

LOSSLESS = RoceSpec(pfc_priority=3, dscp=26, ecn=True)
PVRDMA = NicRequest(kind=NicKind.PVRDMA, port_group="roce")
WANTED = {
    "nmlx5_core": "max_vfs=8,8 drss=4 pfctx=0x08 pfcrx=0x08 trust_state=2 ecn=1",
    "nmlx5_rdma": "dscp_force=26",
}


def roce_rig(*kinds: HostConfigKind, hosts: int = 1) -> Rig:
    """Return hosts whose drivers have options of somebody else's, virtual functions among them."""
    made = rig(nodes(hosts, nic=SRIOV), quad_8u3(hosts=hosts, taken=False), *(kinds or (HostConfigKind.ROCE,)))
    made.spec = replace(made.spec, roce=LOSSLESS)
    for machine in made.hosts.there.values():
        machine.drivers["nmlx5_core"] = ["max_vfs=8,8 drss=4"] * 2
    return made


def options(site: Rig, number: int = 1) -> dict[str, list[str]]:
    return site.hosts.there[HostRef(f"host-{number}")].drivers


def test_driver_options_are_set_beside_what_is_there_and_run_after_one_reboot() -> None:
    site = roce_rig()
    assert site.run().done
    assert options(site) == {module: [text, text] for module, text in WANTED.items()}
    steps = "WriteRecord EnterMaintenance SetDriver SetDriver Reboot ExitMaintenance WriteRecord"
    assert site.done() == steps.split()
    assert not site.run().applied


def test_a_plan_shows_the_string_that_comes_and_what_was_there() -> None:
    site = roce_rig()
    facts = site.run(dry_run=True).plan.hosts[0].facts.unmet
    assert [(fact.on, fact.configured, fact.wanted) for fact in facts] == [
        ("nmlx5_core", "max_vfs=8,8 drss=4", WANTED["nmlx5_core"]),
        ("nmlx5_rdma", "", WANTED["nmlx5_rdma"]),
    ]
    assert site.hosts.changes == []


def test_what_was_there_before_is_written_down_first() -> None:
    site = roce_rig()
    site.run()
    record = site.hosts.there[HostRef("host-1")].record
    assert '"driver:nmlx5_core":"max_vfs=8,8 drss=4"' in record


def test_hosts_that_are_not_to_be_changed_are_a_finding_and_the_nodes_come_up() -> None:
    site = roce_rig(HostConfigKind.SRIOV)
    bare = (("nmlx5_core", ""), ("nmlx5_rdma", ""))
    hosts = tuple(replace(each, module_options=bare) for each in site.site.inventory.hosts)
    site.site.inventory = replace(site.site.inventory, hosts=hosts)
    report = site.run()
    assert report.done
    assert [each.code for each in report.diagnostics] == ["host.roce"]
    assert site.hosts.changes == []


@pytest.mark.parametrize("after", range(1, 8))
def test_a_run_that_is_killed_anywhere_is_finished_by_the_next(after: int) -> None:
    site = roce_rig()
    site.hosts.cut_after = after
    with pytest.raises(Cut):
        site.run()
    site.hosts.mend()
    assert site.run().done
    assert options(site) == {module: [text, text] for module, text in WANTED.items()}
    assert not site.run().applied


def test_a_host_whose_drivers_are_not_told_is_refused_and_not_changed(golden: Golden) -> None:
    site = roce_rig()
    site.hosts.there[HostRef("host-1")].drivers = {}
    with pytest.raises(NotPossible) as refused:
        site.run()
    assert refused.value.code == "host.not-known"
    golden(refused.value.hint)
    assert site.hosts.changes == []


def pvrdma_rig(seen: Pvrdma, *, bystander: bool = False) -> Rig:
    picture = quad_8u3(hosts=1, taken=False)
    host = replace(picture.hosts[0], pvrdma=seen)
    vms = (*picture.vms, vm("web-1", "vm-9", powered_on=True)) if bystander else picture.vms
    site: Inventory = replace(picture, hosts=(host,), vms=vms)
    return rig((node("node-1", nic=PVRDMA),), site, HostConfigKind.PVRDMA)


UNTAGGED = Pvrdma(vmknic="", firewall=False, adapters=(("vmk1", ROCE),))


def test_the_adapter_is_tagged_and_the_firewall_opened_while_other_vms_run() -> None:
    site = pvrdma_rig(UNTAGGED, bystander=True)
    assert site.run().done
    assert site.done() == ["WriteRecord", "SetVmknic", "SetFirewall"]
    assert site.host().pvrdma == replace(UNTAGGED, vmknic="vmk1", firewall=True)
    assert not site.run().applied


def test_only_what_lacks_is_changed() -> None:
    site = pvrdma_rig(replace(UNTAGGED, vmknic="vmk1"))
    assert site.run().done
    assert site.done() == ["WriteRecord", "SetFirewall"]


def test_which_of_several_adapters_is_meant_is_not_guessed(golden: Golden) -> None:
    site = pvrdma_rig(replace(UNTAGGED, adapters=(("vmk1", ROCE), ("vmk2", ROCE))))
    with pytest.raises(NotPossible) as refused:
        site.run()
    assert refused.value.code == "host.not-known"
    golden(refused.value.message)
    assert site.hosts.changes == []


def test_a_host_without_an_adapter_on_a_switch_is_passed_over(golden: Golden) -> None:
    with pytest.raises(NotPossible) as refused:
        pvrdma_rig(replace(UNTAGGED, adapters=())).run()
    assert refused.value.code == "placement.infeasible"
    golden(refused.value.details)


def test_a_host_whose_drivers_are_set_comes_before_one_to_be_rebooted() -> None:
    site = roce_rig(hosts=2)
    site.spec = replace(site.spec, nodes=site.spec.nodes[:1])
    ready = tuple(WANTED.items())
    bare = (("nmlx5_core", "max_vfs=8,8"), ("nmlx5_rdma", ""))
    first, second = site.site.inventory.hosts
    hosts = (replace(first, module_options=bare), replace(second, module_options=ready))
    site.site.inventory = replace(site.site.inventory, hosts=hosts)
    site.hosts.there[second.ref].drivers = {module: [text, text] for module, text in WANTED.items()}
    report = site.run()
    assert [placement.host_name for placement in report.placements] == ["esx-02.lab.test"]
    assert site.hosts.changes == []


def test_a_host_that_cannot_be_rebooted_is_passed_over() -> None:
    site = roce_rig(hosts=2)
    site.spec = replace(site.spec, nodes=site.spec.nodes[:1])
    bare = (("nmlx5_core", "max_vfs=8,8"), ("nmlx5_rdma", ""))
    hosts = tuple(replace(each, module_options=bare) for each in site.site.inventory.hosts)
    other_vm = vm("web-1", "vm-9", powered_on=True)
    vms = (*site.site.inventory.vms, replace(other_vm, host=hosts[0].ref))
    site.site.inventory = replace(site.site.inventory, hosts=hosts, vms=vms)
    assert [placement.host_name for placement in site.run().placements] == ["esx-02.lab.test"]
