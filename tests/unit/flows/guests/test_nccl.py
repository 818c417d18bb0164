"""The shape of a node is read from what its host says it uses, not from what was planned."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.fakes.pictures import held, quad_8u3
from tests.fakes.requirements import cluster
from tests.fakes.site import FakeVCenter
from tests.unit.core.sites import provisioned
from vsphere_ml.core.errors import GuestError, NotPossible
from vsphere_ml.flows.guests.guests import find
from vsphere_ml.flows.guests.nccl import shape_of, with_topologies
from vsphere_ml.guest.playbooks import playbook

if TYPE_CHECKING:
    from tests.golden import Golden
    from vsphere_ml.core.model.inventory import Inventory

SPEC = cluster(1)


def running(gpus: int = 1) -> Inventory:
    site = provisioned(SPEC, quad_8u3(hosts=1, taken=False))
    vm = replace(next(vm for vm in site.vms if vm.name == "node-1"), powered_on=True)
    [host] = site.hosts
    free = replace(host, gpus=tuple(replace(gpu, used_by=()) for gpu in host.gpus))
    backed = held(free, vm, [gpu.address for gpu in host.gpus[:gpus]])
    nics = tuple(replace(nic, vf_holders=(vm.ref,)) if at == 0 else nic for at, nic in enumerate(backed.nics))
    vms = tuple(vm if each.ref == vm.ref else each for each in site.vms)
    return replace(site, hosts=(replace(backed, nics=nics),), vms=vms)


def test_a_running_node_has_the_functions_its_host_tells_of() -> None:
    assert [place.label for place in shape_of(SPEC, running(), "node-1").places] == ["GPU0", "NIC0"]


def test_a_node_whose_gpus_are_not_told_has_none(golden: Golden) -> None:
    with pytest.raises(NotPossible) as refused:
        shape_of(SPEC, running(gpus=0), "node-1")
    assert (refused.value.code, refused.value.target) == ("nccl.unknown", "node-1")
    golden(refused.value)
    assert refused.value.code == "nccl.unknown"


def test_a_node_that_does_not_run_has_none() -> None:
    with pytest.raises(GuestError) as refused:
        shape_of(cluster(2), running(), "node-2")
    assert refused.value.code == "guest.no-vm"


def test_guests_get_their_files_where_a_playbook_brings_them() -> None:
    site = running()
    vms = tuple(replace(vm, guest_ip="10.0.0.1") if vm.name == "node-1" else vm for vm in site.vms)
    site = replace(site, vms=vms)
    found, vcenter = find(SPEC, site), FakeVCenter(site)
    book = playbook.load(playbook.find("nccl", Path()))
    assert with_topologies(SPEC, found, vcenter, []).topologies == {}
    text = with_topologies(SPEC, found, vcenter, [book]).topologies["node-1"]
    assert 'busid="GPU0"' in text
    assert 'busid="NIC0"' in text
