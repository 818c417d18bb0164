"""What a site has under each node, and who tells how fast its link is."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.fakes import pictures
from tests.unit.bench.sites import port
from vsphere_ml.bench.model.transports import Transport
from vsphere_ml.bench.probe.line_rate import line_rate
from vsphere_ml.bench.probe.machines import Machine, Uplink, machines
from vsphere_ml.bench.probe.survey import Surveyed
from vsphere_ml.core.model.inventory import EthernetCard, PciAddress, VgpuDevice

if TYPE_CHECKING:
    from tests.golden import Golden

NIC = PciAddress("0000:3d:00.0")
KEYS = {
    "pciPassthru.use64bitMMIO": "TRUE",
    "pciPassthru0.cfg.enable_uvm": "1",
    "numa.nodeAffinity": "0",
    "ethernet0.ctxPerDev": "3",
    "guestinfo.userdata": "hunter2",
    "vsml.node": "node-1",
}


def placed() -> Machine:
    """Return node-1's machine: a vGPU and a function of the NIC on the same switch of the first host."""
    devices = (
        EthernetCard(key=3, adapter="vmxnet3", mac="00:50:56:00:00:01", network=pictures.MGMT),
        VgpuDevice(key=1, profile="grid_a100-40c"),
        EthernetCard(key=2, adapter="sriov", mac="00:50:56:00:00:02", network=None, physical_function=NIC),
    )
    vm = pictures.vm(
        "node-1",
        "vm-9",
        powered_on=True,
        hardware_version=20,
        settings=pictures.settings(extra_config=KEYS, devices=devices, latency="high", memory_locked=True),
    )
    host = pictures.held(pictures.r750xa(1), vm, ["0000:3b:00.0"])
    nics = tuple(
        replace(each, vf_holders=(vm.ref,), bits_per_s=100e9, switch="dvs-gpu") if each.address == NIC else each
        for each in host.nics
    )
    site = pictures.site((replace(host, nics=nics),), (vm,), about="x", api_version="8.0.3.0")
    return machines(site, {"node-1": vm})["node-1"]


def test_a_machine_has_the_settings_that_change_its_speed_and_no_others() -> None:
    settings = placed().settings
    assert {key: settings[key] for key in ("hardware_version", "latency_sensitivity", "memory_reservation_locked")} == {
        "hardware_version": "20",
        "latency_sensitivity": "high",
        "memory_reservation_locked": "yes",
    }
    assert (settings["esxi_host"], settings["esxi_version"]) == ("esx-01.lab.test", "8.0.3 build 24022510")
    assert {key for key in KEYS if key in settings} == set(KEYS) - {"guestinfo.userdata", "vsml.node"}


def test_a_machine_knows_how_far_gpu_and_nic_are_apart_and_on_which_numa_node() -> None:
    machine = placed()
    assert (machine.gpu_profile, machine.locality, machine.numa_node) == ("grid_a100-40c", "same PCIe switch", 0)
    assert machine.nic_bits_per_s == 100e9
    assert machine.uplinks == {"00:50:56:00:00:01": Uplink(switch="dvs-gpu", bits_per_s=100e9)}


def guest(node: str, driver: str = "mlx5_core", rate: float | None = 100e9) -> Surveyed:
    return Surveyed(
        node=node,
        runtime=True,
        drivers={"eth0": "vmxnet3", "eth1": driver} if driver else {},
        macs={"eth0": "00:50:56:00:00:01"},
        rates={"eth0": 10e9, **({"eth1": rate} if rate else {})},
        ports=(replace(port(), line_rate_bits_per_s=rate),),
    )


def test_the_slowest_nic_that_tells_its_rate_is_the_links(golden: Golden) -> None:
    rate = line_rate([guest("node-1"), guest("node-2", rate=25e9)], "eth1", Transport.TCP, {})
    assert rate.bits_per_s == 25e9
    golden(rate.source)


def test_a_rate_that_a_paravirtual_adapter_makes_up_is_not_believed(golden: Golden) -> None:
    full = {"node-1": Machine(nic_bits_per_s=100e9), "node-2": Machine(nic_bits_per_s=100e9)}
    rate = line_rate([guest("node-1"), guest("node-2")], "eth0", Transport.TCP, full)
    assert rate.bits_per_s is None
    golden(rate.source)


def test_vcenter_tells_the_uplink_of_a_paravirtual_adapter_by_its_mac(golden: Golden) -> None:
    of = {
        "node-1": Machine(uplinks={"00:50:56:00:00:01": Uplink(switch="dvs-gpu", bits_per_s=100e9)}),
        "node-2": Machine(uplinks={"00:50:56:00:00:01": Uplink(switch="dvs-gpu", bits_per_s=25e9)}),
    }
    rate = line_rate([guest("node-1"), guest("node-2")], "eth0", Transport.TCP, of)
    assert rate.bits_per_s == 25e9
    golden(rate.source)


@pytest.mark.parametrize(("uplink", "known"), [(25e9, 25e9), (None, None)])
def test_pvrdma_has_the_rate_of_its_switch_s_uplink(uplink: float | None, known: float | None) -> None:
    adapter = replace(port(interface="eth0"), paravirtual=True)
    found = [replace(guest(name), ports=(adapter,)) for name in ("node-1", "node-2")]
    uplinks = {} if uplink is None else {"00:50:56:00:00:01": Uplink(switch="dvs-gpu", bits_per_s=uplink)}
    of = dict.fromkeys(("node-1", "node-2"), Machine(uplinks=uplinks, nic_bits_per_s=100e9))
    assert line_rate(found, "eth1", Transport.PVRDMA, of).bits_per_s == known


def test_what_is_no_vms_adapter_has_no_uplink_though_its_address_is_one() -> None:
    bare = replace(guest("node-1"), drivers={})
    of = {"node-1": Machine(uplinks={"00:50:56:00:00:01": Uplink(switch="dvs-gpu", bits_per_s=100e9)})}
    assert line_rate([bare], "eth0", Transport.TCP, of).bits_per_s is None


@pytest.mark.parametrize(("transport", "known"), [(Transport.ROCE, 100e9), (Transport.TCP, None)])
def test_vcenter_is_believed_of_the_nic_that_rdma_goes_over(
    transport: Transport, known: float | None, golden: Golden
) -> None:
    loud = line_rate([guest("node-1"), guest("node-2", rate=25e9)], "eth0", Transport.ROCE, {})
    assert loud.bits_per_s == 25e9
    golden(loud.source)
    silent = [guest("node-1", rate=None), guest("node-2", rate=None)]
    of = {"node-1": Machine(nic_bits_per_s=100e9), "node-2": Machine(nic_bits_per_s=200e9)}
    rate = line_rate(silent, "eth1", transport, of)
    assert rate.bits_per_s == known


def test_what_a_person_gives_wins() -> None:
    rate = line_rate([guest("node-1")], "eth1", Transport.TCP, {}, 40e9)
    assert (rate.bits_per_s, rate.source) == (40e9, "given with --link-gbit")
