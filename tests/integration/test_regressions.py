"""What went wrong in others' tools, and must not here: one test each, its docstring naming the thread.

Where a server decides, the lab's vCenter does; it refuses by its own code, and by no rule of vsml.
"""

from __future__ import annotations

import re
from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from pyVim.task import WaitForTask
from pyVmomi import vim

from tests.contract.vcenter_contract import PROFILE, SOURCE, Rig, rig
from tests.fakes.requirements import cluster, node, nodes
from tests.integration import labs
from tests.integration.test_attribute_access import everything
from vsphere_ml.core.errors import NotPossible
from vsphere_ml.core.model.inventory import EthernetCard, VgpuDevice
from vsphere_ml.core.model.placement import WantGroup, WantSriov, WantVgpu
from vsphere_ml.core.model.spec import GpuRequest
from vsphere_ml.core.placement.solve import solve
from vsphere_ml.core.placement.vm_config import MMIO_SIZE
from vsphere_ml.core.plan.changes import AttachDevices, CloneVm, PowerOn, UpgradeHardware
from vsphere_ml.core.plan.diff import diff
from vsphere_ml.core.ports.vcenter import Scope
from vsphere_ml.core.units import gib
from vsphere_ml.flows.guests.guests import fast_macs
from vsphere_ml.vsphere.gateway import Gateway
from vsphere_ml.vsphere.inventory import vms

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.contract.vcenter_contract import Connect
    from vsphere_ml.core.model.inventory import Inventory
    from vsphere_ml.core.model.spec import ClusterSpec
    from vsphere_ml.core.plan.plan import Plan
    from vsphere_ml.lab.state import Lab
    from vsphere_ml.vsphere.connection.session import Session

__all__ = ["rig"]
pytestmark = pytest.mark.lab
_device: Any = vim.vm.device
TRACE = "trace.xml"


@pytest.fixture
def connect(lab: Lab, tmp_path: Path) -> Connect:
    return lambda: Gateway(labs.sign_in(lab, trace=tmp_path / TRACE))


@pytest.fixture
def session(lab: Lab) -> Iterator[Session]:
    """A client beside vsml's, which does what other tools did."""
    made = labs.sign_in(lab)
    yield made
    made.close()


def raw(session: Session, name: str, kind: Any = vim.VirtualMachine) -> Any:
    return next(each for each in everything(session.content, kind) if each.name == name)


def planned(spec: ClusterSpec, site: Inventory) -> Plan:
    return diff(spec, solve(spec, site), site)


def site_of(rig: Rig, spec: ClusterSpec) -> Inventory:
    return rig.vcenter.read_site(Scope(owner=spec.name, vms=frozenset({SOURCE, *(each.name for each in spec.nodes)})))


def cards(rig: Rig, name: str) -> list[EthernetCard]:
    return [each for each in rig.settings(name).devices if isinstance(each, EthernetCard)]


def test_two_vgpus_go_in_one_spec_with_negative_keys_of_their_own(rig: Rig, session: Session) -> None:
    """hashicorp/terraform#27311: "Cannot add multiple devices using the same device key"."""
    rig.equip("n-1")
    backing = _device.VirtualPCIPassthrough.VmiopBackingInfo(vgpu=PROFILE)
    twice = [
        _device.VirtualDeviceSpec(operation="add", device=_device.VirtualPCIPassthrough(key=-1, backing=backing))
        for _ in range(2)
    ]
    with pytest.raises(vim.fault.VimFault):
        WaitForTask(raw(session, "n-1").ReconfigVM_Task(vim.vm.ConfigSpec(deviceChange=twice)))
    rig.do(AttachDevices(vm="n-1", add=(WantVgpu(profile=PROFILE), WantVgpu(profile=PROFILE))))
    gpus = [each for each in rig.settings("n-1").devices if isinstance(each, VgpuDevice)]
    assert len({each.key for each in gpus}) == 2


def test_hardware_is_upgraded_before_devices_are_attached(rig: Rig) -> None:
    """kubernetes-sigs/cluster-api-provider-vsphere#1749: to attach first deadlocks, as the version is too low."""
    rig.do(rig.clone("n-1"))
    group, roce = rig.read_site().hosts[0].groups[0], rig.network("roce")
    attach = AttachDevices(vm="n-1", add=(WantGroup(group=group, network=roce.ref, network_name=roce.name),))
    assert rig.refused(attach)
    spec = cluster(1, name=rig.cluster)
    changes = list(planned(spec, site_of(rig, spec)).changes)
    order = [type(each) for each in changes if isinstance(each, CloneVm | UpgradeHardware | AttachDevices | PowerOn)]
    assert order == [CloneVm, UpgradeHardware, AttachDevices, PowerOn]
    assert not next(each for each in changes if isinstance(each, CloneVm)).devices
    rig.do(UpgradeHardware(vm="n-1", version=20))
    rig.do(attach)


def test_an_automatic_function_is_the_function(rig: Rig, session: Session) -> None:
    """hashicorp/terraform-provider-vsphere#2307: the prefix `Automatic-` made a difference that never went away."""
    port, roce = rig.read_site().hosts[0].nics[0].address, rig.network("roce")
    rig.equip("n-1", WantSriov(physical_function=port, network=roce.ref, network_name=roce.name))
    (card,) = [
        each
        for each in raw(session, "n-1").config.hardware.device
        if isinstance(each, _device.VirtualSriovEthernetCard)
    ]
    plain = vms.device(card)
    prefixed = deepcopy(card)
    prefixed.sriovBacking.physicalFunctionBacking.id = f"Automatic-{port}"
    assert isinstance(plain, EthernetCard)
    assert plain.physical_function == port
    assert vms.device(prefixed) == plain


def test_a_nic_is_known_by_its_backing_and_its_mac_and_never_by_its_slot(rig: Rig) -> None:
    """hashicorp/terraform-provider-vsphere#2133: guessed slots broke at hardware version 20; #2115: NICs made anew."""
    spec = cluster(1, name=rig.cluster)
    for change in planned(spec, site_of(rig, spec)).changes:
        if not isinstance(change, PowerOn):
            rig.do(change)
    before = {each.adapter: each for each in cards(rig, "node-1")}
    # The management NIC comes again, behind the fast one, in another slot.
    rig.do(AttachDevices(vm="node-1", add=(rig.nic(),)))
    rig.do(AttachDevices(vm="node-1", add=(), remove=(before["vmxnet3"].key,)))
    after = cards(rig, "node-1")
    assert after[-1].key != before["vmxnet3"].key
    assert [each.adapter for each in after] == ["sriov", "vmxnet3"]
    site = site_of(rig, spec)
    assert [type(each) for each in planned(spec, site).changes if not isinstance(each, PowerOn)] == []
    assert fast_macs(rig.vm("node-1")) == (before["sriov"].mac,)


def test_clones_made_at_once_have_macs_of_their_own(rig: Rig) -> None:
    """vmware/open-vm-tools#466: clones made in parallel got one MAC, so that people cloned one at a time."""
    names = [f"n-{number}" for number in range(8)]
    wanted = [replace(rig.clone(name, rig.nic(), host=at % 4), devices=True) for at, name in enumerate(names)]
    assert rig.settle(*wanted) == [None] * len(names)
    macs = [each.mac for name in (*names, SOURCE) for each in cards(rig, name)]
    assert len(set(macs)) == len(macs) >= len(names) + 1


def test_mmio_space_comes_from_the_gpus_and_never_from_the_vms_memory(rig: Rig) -> None:
    """ray-project/ray#48269: a size that was fixed, or followed the VM's memory, was wrong for other GPUs."""
    site = rig.read_site()
    for gpus, space in ((1, "128"), (2, "256"), (4, "512")):
        for memory in (gib(32), gib(512)):
            wanted = node("n-1", cpus=4, memory=memory, gpu=GpuRequest(profile="A100-40C", count=gpus))
            (placement,) = solve(cluster((wanted,)), site).placements
            assert placement.target.extra_config[MMIO_SIZE] == space


def test_pools_of_one_name_are_refused_with_their_paths(rig: Rig, session: Session) -> None:
    """vmware-archive/vhpc-toolkit#12: the first pool of a name was taken, in whatever cluster it was."""
    root = raw(session, "Resources", vim.ResourcePool)
    spec = vim.ResourceConfigSpec(cpuAllocation=_all_of_it(), memoryAllocation=_all_of_it())
    made = [root.CreateResourcePool(name=team, spec=spec) for team in ("team-a", "team-b")]
    try:
        for pool in made:
            pool.CreateResourcePool(name="ml", spec=spec)
        wanted = cluster(1, location=replace(cluster(1).location, pool="ml"))
        with pytest.raises(NotPossible) as caught:
            solve(wanted, rig.read_site())
        assert caught.value.code == "site.ambiguous"
        for team in ("team-a", "team-b"):
            assert f"/lab-dc/host/gpu/Resources/{team}/ml" in str(caught.value)
    finally:
        for pool in made:
            WaitForTask(pool.Destroy_Task())


def _all_of_it() -> Any:
    shares = vim.SharesInfo(level="normal", shares=0)
    return vim.ResourceAllocationInfo(reservation=0, limit=-1, expandableReservation=True, shares=shares)


def test_memory_is_reserved_and_locked_in_one_spec_and_read_back(rig: Rig, session: Session, tmp_path: Path) -> None:
    """hashicorp/terraform-provider-vsphere#2692: the lock had no effect; bosh-vsphere-cpi-release#372: nor power-on."""
    rig.do(rig.clone("n-1"))
    trace = (tmp_path / TRACE).read_text()
    (sent,) = [each for each in trace.split("<soapenv:Envelope") if "<CloneVM_Task" in each and "memoryMB" in each]
    for field in ("memoryReservationLockedToMax[^>]*>true<", "reservation[^>]*>65536<"):
        assert re.search(field, sent)
    settings = rig.settings("n-1")
    assert (settings.memory_locked, settings.memory_reservation) == (True, settings.memory) == (True, gib(64))
    rig.equip("node-1", rig.nic())
    unlocked = vim.vm.ConfigSpec(
        memoryReservationLockedToMax=False, memoryAllocation=vim.ResourceAllocationInfo(reservation=0)
    )
    WaitForTask(raw(session, "node-1").ReconfigVM_Task(unlocked))
    spec = cluster(nodes(1, cpus=8), name=rig.cluster)
    missing = [drift for each in planned(spec, site_of(rig, spec)).changes for drift in getattr(each, "drift", ())]
    wanted = {("memory reservation", "not locked", "locked"), ("memory reservation", "0 B", "64 GiB")}
    assert wanted <= {(each.field, each.seen, each.wanted) for each in missing if each.rule == "memory-reserved"}
