"""What the hosts behind the ports promise, those in memory and the lab's alike.

A module that runs it defines a fixture `hosts` that gives a fresh rig: one ESXi 7.0 U2 with two nodes of the cluster
`train` running, its SSH service stopped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from vsphere_ml.core.errors import VSphereError
from vsphere_ml.core.hosts.host_changes import (
    AwaitHost,
    EnterMaintenance,
    ExitMaintenance,
    NoteRunning,
    PowerOnAgain,
    Reboot,
    SetDriver,
    SetFirewall,
    SetFunctions,
    SetGraphics,
    SetKernel,
    SetPassthrough,
    SetVmknic,
    ShutDown,
    WriteRecord,
)
from vsphere_ml.core.model.host_settings import AccessMethod
from vsphere_ml.core.model.inventory import PciAddress
from vsphere_ml.core.tools import mft
from vsphere_ml.core.tools.roce import CORE, RDMA, parameters

if TYPE_CHECKING:
    from vsphere_ml.core.hosts.host_changes import HostChange
    from vsphere_ml.core.model.esxi_state import EsxiHostState, VmOnHost
    from vsphere_ml.core.model.inventory import HostRef
    from vsphere_ml.core.ports.esxi import Hosts, HostShells

PORTS = (PciAddress("0000:3c:00.0"), PciAddress("0000:b0:00.0"))
DEADLINE_S = 300.0


@dataclass(slots=True)
class HostsRig:
    """The ports, and the one host there is."""

    hosts: Hosts
    shells: HostShells
    ref: HostRef
    name: str

    def see(self) -> EsxiHostState:
        return self.hosts.see([self.ref])[self.ref]

    def vms(self) -> list[VmOnHost]:
        return [vm for vm in self.see().vms if vm.cluster_mark == "train"]

    def do(self, kind: type[HostChange], deadline_s: float = DEADLINE_S, **fields: object) -> None:
        change = kind(host=self.ref, host_name=self.name, **fields)  # type: ignore[arg-type]
        self.hosts.perform(change, deadline_s, lambda _words: None)

    def refused(self, kind: type[HostChange], deadline_s: float = DEADLINE_S, **fields: object) -> VSphereError:
        with pytest.raises(VSphereError) as caught:
            self.do(kind, deadline_s, **fields)
        return caught.value

    def empty(self) -> None:
        for vm in self.vms():
            self.do(ShutDown, vm=vm.ref, vm_name=vm.name)
        self.do(EnterMaintenance)

    def reboot(self) -> None:
        self.do(Reboot, boot_time=self.see().boot_time)


class HostsContract:
    """Each test has a host of its own."""

    def test_a_sight_tells_what_the_host_is_set_to(self, hosts: HostsRig) -> None:
        seen = hosts.see()
        assert (seen.name, seen.version, seen.cpu_vendor) == (hosts.name, "7.0.2", "intel")
        assert (seen.connected, seen.maintenance, seen.record) == (True, False, "")
        assert (seen.kernel.access, seen.kernel.configured, seen.kernel.runtime) == (
            AccessMethod.ESXCLI,
            "FALSE",
            "FALSE",
        )
        assert seen.graphics.default == "sharedDirect"
        assert {seen.functions[port].vfs_now for port in PORTS} == {8}
        assert [(vm.name, vm.on, vm.agent, vm.resume) for vm in hosts.vms()] == [
            ("node-1", True, False, None),
            ("node-2", True, False, None),
        ]
        assert seen.boot_time

    def test_what_is_written_down_is_there_until_it_is_taken_away(self, hosts: HostsRig) -> None:
        text = '{"v":1,"by":"train","boot":"2026-01-01T00:00:00+00:00","in":1,"was":{"kernel":"FALSE"}}'
        vm = hosts.vms()[0]
        hosts.do(WriteRecord, text=text)
        hosts.do(NoteRunning, vm=vm.ref, vm_name=vm.name)
        assert hosts.see().record == text
        assert [each.resume for each in hosts.vms()] == [hosts.name, None]
        hosts.do(WriteRecord, text="")
        hosts.do(PowerOnAgain, vm=vm.ref, vm_name=vm.name)  # it runs already: only the note goes
        assert hosts.see().record == ""
        assert [each.resume for each in hosts.vms()] == [None, None]

    def test_maintenance_mode_waits_for_vms_and_gives_up(self, hosts: HostsRig) -> None:
        hosts.refused(EnterMaintenance, 2.0)
        assert not hosts.see().maintenance
        hosts.empty()
        assert hosts.see().maintenance
        hosts.do(ExitMaintenance)
        assert not hosts.see().maintenance

    def test_a_guest_is_shut_down_and_its_vm_started_again(self, hosts: HostsRig) -> None:
        vm = hosts.vms()[0]
        hosts.do(ShutDown, vm=vm.ref, vm_name=vm.name)
        hosts.do(ShutDown, vm=vm.ref, vm_name=vm.name)  # off already
        assert [each.on for each in hosts.vms()] == [False, True]
        hosts.do(PowerOnAgain, vm=vm.ref, vm_name=vm.name)
        assert [each.on for each in hosts.vms()] == [True, True]

    def test_no_vm_starts_in_maintenance_mode(self, hosts: HostsRig) -> None:
        hosts.empty()
        vm = hosts.vms()[0]
        hosts.refused(PowerOnAgain, vm=vm.ref, vm_name=vm.name)

    def test_no_reboot_outside_maintenance_mode(self, hosts: HostsRig) -> None:
        hosts.refused(Reboot, boot_time=hosts.see().boot_time)
        assert [vm.on for vm in hosts.vms()] == [True, True]

    def test_a_kernel_setting_waits_for_the_reboot(self, hosts: HostsRig) -> None:
        before = hosts.see().boot_time
        hosts.empty()
        hosts.do(SetKernel, value="TRUE", access=AccessMethod.ESXCLI)
        assert (hosts.see().kernel.configured, hosts.see().kernel.runtime) == ("TRUE", "FALSE")
        hosts.reboot()
        after = hosts.see()
        assert (after.kernel.configured, after.kernel.runtime) == ("TRUE", "TRUE")
        assert after.boot_time > before
        assert (after.connected, after.maintenance) == (True, True)

    def test_the_option_manager_of_70u2_does_not_have_it(self, hosts: HostsRig) -> None:
        hosts.refused(SetKernel, value="TRUE", access=AccessMethod.OPTIONS)

    def test_functions_wait_for_the_reboot_too(self, hosts: HostsRig) -> None:
        hosts.empty()
        hosts.do(SetFunctions, port=PORTS[0], count=4)
        seen = hosts.see().functions[PORTS[0]]
        assert (seen.vfs, seen.vfs_now) == (4, 8)
        hosts.reboot()
        seen = hosts.see().functions[PORTS[0]]
        assert (seen.vfs, seen.vfs_now) == (4, 4)

    def test_the_default_graphics_type(self, hosts: HostsRig) -> None:
        hosts.empty()
        hosts.do(SetGraphics, value="shared")
        assert hosts.see().graphics.default == "shared"

    def test_the_graphics_type_of_a_single_gpu(self, hosts: HostsRig) -> None:
        hosts.empty()
        one, *_ = sorted(hosts.see().graphics.now)
        hosts.do(SetGraphics, value="sharedDirect", gpus=((one, "shared"),))
        assert (hosts.see().graphics.default, hosts.see().graphics.devices[one]) == ("sharedDirect", "shared")

    def test_passthrough_counts_at_once_on_a_host_that_rebinds_and_after_the_boot_otherwise(
        self, hosts: HostsRig
    ) -> None:
        assert hosts.see().rebinds
        hosts.empty()
        hosts.do(SetPassthrough, port=PORTS[0], value=True)
        seen = hosts.see().functions[PORTS[0]]
        assert (seen.passthrough, seen.passthrough_now) == (True, False)
        hosts.do(SetPassthrough, port=PORTS[0], value=True, at_once=True)
        assert hosts.see().functions[PORTS[0]].passthrough_now

    def test_a_drivers_parameters_are_set_beside_the_others(self, hosts: HostsRig) -> None:
        hosts.do(SetDriver, module=CORE, keys=(("ecn", "1"),))
        hosts.do(SetDriver, module=CORE, keys=(("pfctx", "0x08"), ("pfcrx", "0x08")))
        seen = hosts.see().drivers
        assert seen is not None
        assert {"ecn": "1", "pfctx": "0x08", "pfcrx": "0x08"}.items() <= parameters(seen[CORE]).items()
        hosts.do(SetDriver, module=RDMA, keys=(("dscp_force", "26"),))
        seen = hosts.see().drivers
        assert seen is not None
        assert seen[RDMA] == "dscp_force=26"

    def test_pvrdma_has_a_tag_and_a_firewall_rule(self, hosts: HostsRig) -> None:
        hosts.do(SetVmknic, value="vmk1")
        hosts.do(SetFirewall, value=True)
        seen = hosts.see().pvrdma
        assert seen is not None
        assert (seen.vmknic, seen.firewall) == ("vmk1", True)
        hosts.do(SetFirewall, value=False)
        seen = hosts.see().pvrdma
        assert seen is not None
        assert not seen.firewall

    def test_a_host_that_is_there_is_not_waited_for(self, hosts: HostsRig) -> None:
        hosts.do(AwaitHost)

    def test_no_shell_while_the_service_is_stopped(self, hosts: HostsRig) -> None:
        assert hosts.see().ssh_running is False
        with pytest.raises(VSphereError) as caught:
            hosts.shells.run(hosts.name, mft.MST_STATUS)
        assert caught.value.code == "host.unreachable"

    def test_firmware_has_a_next_boot_and_a_now(self, hosts: HostsRig) -> None:
        hosts.hosts.ssh(hosts.ref, run=True)
        assert hosts.see().ssh_running is True
        listed = mft.devices(hosts.shells.run(hosts.name, mft.MST_STATUS).out)
        devices = [found.name for port in PORTS if (found := mft.device_at(listed, port, None))]
        assert len(devices) == 2
        assert self.firmware(hosts, devices[0]) == mft.FirmwareSetting(next_boot=False, current=False)
        printed = hosts.shells.run(hosts.name, mft.query(devices[0])).out
        assert mft.number(printed, "SRIOV_EN") == mft.FirmwareSetting(1, 1)
        assert mft.number(printed, "NUM_OF_VFS") == mft.FirmwareSetting(8, 8)
        assert hosts.shells.run(hosts.name, mft.setting(devices[0], value=True)).ok
        assert self.firmware(hosts, devices[0]) == mft.FirmwareSetting(next_boot=True, current=False)
        hosts.empty()
        hosts.reboot()
        hosts.shells.drop(hosts.name)
        hosts.hosts.ssh(hosts.ref, run=True)
        assert self.firmware(hosts, devices[0]) == mft.FirmwareSetting(next_boot=True, current=True)
        assert self.firmware(hosts, devices[1]) == mft.FirmwareSetting(next_boot=False, current=False)

    def firmware(self, hosts: HostsRig, device: str) -> mft.FirmwareSetting | None:
        return mft.value(hosts.shells.run(hosts.name, mft.query(device)).out)

    def test_a_device_that_is_not_there_is_an_answer_and_no_error(self, hosts: HostsRig) -> None:
        hosts.hosts.ssh(hosts.ref, run=True)
        answer = hosts.shells.run(hosts.name, mft.query("mt9999_pciconf7"))
        assert not answer.ok
        assert mft.words(answer)
