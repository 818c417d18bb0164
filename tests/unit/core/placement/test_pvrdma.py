"""PVRDMA: a paravirtual adapter that goes with any GPU, on hosts that do it, on one distributed switch."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.fakes.pictures import ROCE, quad_8u3
from tests.fakes.requirements import cluster, nodes
from tests.unit.core.sites import one_host, planned, provisioned, refused
from vsphere_ml.core.errors import NotPossible
from vsphere_ml.core.model.device_kinds import NicKind
from vsphere_ml.core.model.inventory import Inventory, Pvrdma
from vsphere_ml.core.model.placement import Pairing, WantPvrdma
from vsphere_ml.core.model.spec import NicRequest
from vsphere_ml.core.placement.solve import solve

if TYPE_CHECKING:
    from tests.golden import Golden
    from vsphere_ml.core.model.spec import ClusterSpec

READY = Pvrdma(vmknic="vmk1", firewall=True)
NIC = NicRequest(kind=NicKind.PVRDMA, port_group="roce")


def spec(count: int = 1) -> ClusterSpec:
    return cluster(nodes(count, cpus=4, nic=NIC))


def test_a_node_gets_the_adapter_beside_a_gpu_and_is_told_what_it_cannot_do(golden: Golden) -> None:
    placement = solve(spec(), one_host(pvrdma=READY))
    (node_placement,) = placement.placements
    assert (node_placement.pairing, node_placement.nic) == (Pairing.GPU_ONLY, None)
    assert WantPvrdma(network=ROCE, network_name="roce") in node_placement.target.devices
    golden(placement.notes)


def test_a_second_look_finds_nothing_to_do() -> None:
    assert not planned(spec(4), provisioned(spec(4), one_host(pvrdma=READY)))


def test_the_adapter_goes_when_it_is_not_asked_for_any_more() -> None:
    done = provisioned(spec(), one_host(pvrdma=READY))
    removed = [
        name
        for change in planned(cluster(nodes(1, cpus=4, nic=NicRequest(kind=NicKind.NONE))), done).changes
        for name in getattr(change, "remove_names", ())
    ]
    assert len(removed) == 1
    assert removed[0].startswith("pvrdma NIC")


@pytest.mark.parametrize(
    "state",
    [
        None,
        Pvrdma(vmknic="", firewall=True),
        Pvrdma(vmknic="vmk1", firewall=False),
    ],
)
def test_a_host_that_does_no_pvrdma_says_what_it_lacks_and_what_to_type(state: Pvrdma | None, golden: Golden) -> None:
    error = refused(spec(), one_host(pvrdma=state))
    golden(error.details)
    assert "Net.PVRDMAVmknic vmkN" in error.hint


def switched(site: Inventory, switches: dict[str, str | None]) -> Inventory:
    nets = tuple(replace(net, switch=switches.get(net.name, net.switch)) for net in site.networks)
    hosts = tuple(replace(host, pvrdma=READY) for host in site.hosts)
    return replace(site, networks=nets, hosts=hosts)


def test_a_port_group_of_no_distributed_switch_is_refused() -> None:
    with pytest.raises(NotPossible) as caught:
        solve(spec(), switched(quad_8u3(), {"roce": None}))
    assert caught.value.code == "network.no-switch"


def test_nodes_on_two_switches_are_refused(golden: Golden) -> None:
    apart = (*nodes(1, nic=NIC), replace(nodes(2, nic=NIC)[1], nic=replace(NIC, port_group="vm-mgmt")))
    with pytest.raises(NotPossible) as caught:
        solve(cluster(apart), switched(quad_8u3(), {"vm-mgmt": "dvs-other"}))
    assert caught.value.code == "network.many-switches"
    golden(caught.value)
