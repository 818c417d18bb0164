"""The first rig: vSphere 7.0 U2, no device groups, GPU and NIC paired by our own choice of functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.contract.vcenter_contract import PROFILE, Rig
from tests.integration import labs
from vsphere_ml.core.model.inventory import PciFunctionDevice
from vsphere_ml.core.model.placement import WantPassthrough, WantSriov, WantVgpu
from vsphere_ml.core.plan.changes import AttachDevices, PowerOn
from vsphere_ml.lab.server import topology_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from vsphere_ml.core.model.inventory import NicPort
    from vsphere_ml.core.model.placement import WantedDevice

pytestmark = pytest.mark.lab
SOURCE = "ubuntu-20.04-gpu"
WITH_SRIOV = "sriov_enabled = true\nsriov_active = 8"


def rig_on(state: Path, topology: str) -> Iterator[Rig]:
    with labs.running(state, topology) as lab:
        made = Rig(labs.gateway(lab), "seed", SOURCE)
        yield made
        made.vcenter.close()


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    yield from rig_on(tmp_path_factory.mktemp("state"), "seed-7.0u2")


@pytest.fixture(scope="module")
def rig_of_whole_nics(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """Give the same rig's NICs to VMs whole, by fixed DirectPath."""
    home = tmp_path_factory.mktemp("whole")
    file = home / "whole.toml"
    text = topology_file("seed-7.0u2").read_text()
    assert WITH_SRIOV in text
    file.write_text(text.replace(WITH_SRIOV, "sriov_enabled = false\npassthrough = true"))
    yield from rig_on(home, str(file))


def test_a_look_at_an_older_vcenter_asks_nothing_newer_than_it(rig: Rig) -> None:
    site = rig.read_site()
    (host,) = site.hosts
    assert (site.api_version, host.version) == ("7.0.2.0", "7.0.2")
    assert host.groups == ()
    assert {gpu.vgpu_mode for gpu in host.gpus} == {None}
    assert PROFILE in {profile.name for profile in host.profiles}
    addresses = [*(gpu.address for gpu in host.gpus), *(nic.address for nic in host.nics)]
    assert None not in {host.numa_of(address) for address in addresses}


def run_with(rig: Rig, nic: WantedDevice) -> NicPort:
    """Run a VM with a GPU and this device; return the first NIC as seen after that."""
    rig.do(rig.clone("n-1"))
    rig.do(AttachDevices(vm="n-1", add=(rig.nic(), WantVgpu(profile=PROFILE), nic)))
    rig.do(PowerOn(vm="n-1"))
    return rig.read_site().hosts[0].nics[0]


def test_a_vm_with_a_virtual_function_of_the_nic_next_to_its_gpu_runs(rig: Rig) -> None:
    network, port = rig.network("roce"), rig.read_site().hosts[0].nics[0]
    assert (port.vfs, port.vf_holders, port.bits_per_s) == (8, (), 100e9)
    wanted = WantSriov(physical_function=port.address, network=network.ref, network_name=network.name)
    after = run_with(rig, wanted)
    assert (after.vf_holders, after.held_by) == ((rig.vm("n-1").ref,), None)


def test_a_vm_with_the_whole_nic_next_to_its_gpu_runs(rig_of_whole_nics: Rig) -> None:
    rig = rig_of_whole_nics
    host = rig.read_site().hosts[0]
    port, function = host.nics[0], host.pci[host.nics[0].address]
    assert (port.passthrough, port.held_by, bool(port.system_id)) == (True, None, True)
    after = run_with(
        rig,
        WantPassthrough(
            address=port.address,
            vendor=function.vendor,
            device=function.device,
            system_id=port.system_id,
            name=function.name,
        ),
    )
    assert (after.held_by, after.vf_holders) == (rig.vm("n-1").ref, ())
    places = [device.address for device in rig.settings("n-1").devices if isinstance(device, PciFunctionDevice)]
    assert places == [port.address]
