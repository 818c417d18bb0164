"""What a VM gets when it is to have a device, by the rules of its host and its hardware version."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING, assert_never

from vsphere_ml.core.catalog.versions import DEVICE_GROUPS_HARDWARE, PCI_HARDWARE
from vsphere_ml.core.errors import VSphereError
from vsphere_ml.core.model.inventory import (
    ComponentKind,
    EthernetCard,
    GroupInstance,
    PciFunctionDevice,
    VgpuDevice,
    Vm,
    VmDevice,
)
from vsphere_ml.core.model.placement import (
    WantDynamic,
    WantGroup,
    WantNic,
    WantPassthrough,
    WantPvrdma,
    WantSriov,
    WantVgpu,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from vsphere_ml.core.model.inventory import GroupComponent, Host
    from vsphere_ml.core.model.placement import WantedDevice

SAME_MAC = "00:50:56:9f:00:01"


def refusal(code: str, message: str, target: str = "") -> VSphereError:
    return VSphereError(message, code=code, target=target)


@dataclass(slots=True)
class Workshop:
    """Makes devices. `drops` may name `deviceGroups` or `devices`, which then are silently left out."""

    drops: frozenset[str] = frozenset()
    same_macs: bool = False  # new NICs all get the same MAC
    numbers: Iterator[int] = field(default_factory=lambda: count(9000))

    def equipped(self, host: Host, vm: Vm, wanted: Iterable[WantedDevice]) -> Vm:
        for want in wanted:
            vm = self.with_device(host, vm, want)
        return vm

    def with_device(self, host: Host, vm: Vm, want: WantedDevice) -> Vm:
        if vm.settings is None:
            raise refusal("vsphere.vm-config", "the VM has no settings", vm.name)
        check_device(host, vm, want)
        if "devices" in self.drops and not isinstance(want, WantNic):
            return vm
        if not isinstance(want, WantGroup):
            added = (self.device(want),)
            return replace(vm, settings=replace(vm.settings, devices=(*vm.settings.devices, *added)))
        key = next(self.numbers)
        members = tuple(self.member(part, want, key) for part in want.group.components)
        remaining = () if "deviceGroups" in self.drops else (GroupInstance(key=key, name=want.group.name),)
        settings = replace(
            vm.settings, devices=(*vm.settings.devices, *members), groups=(*vm.settings.groups, *remaining)
        )
        return replace(vm, settings=settings)

    def device(self, want: WantVgpu | WantSriov | WantPassthrough | WantDynamic | WantPvrdma | WantNic) -> VmDevice:
        key = next(self.numbers)
        match want:
            case WantVgpu():
                return VgpuDevice(key=key, profile=want.profile)
            case WantPassthrough():
                return PciFunctionDevice(key=key, address=want.address)
            case WantDynamic():
                ids = (want.vendor, want.device)
                return PciFunctionDevice(key=key, address=None, allowed=(ids,), label=want.label)
            case WantSriov():
                return EthernetCard(
                    key=key,
                    adapter="sriov",
                    mac=self.mac(),
                    network=want.network,
                    physical_function=want.physical_function,
                )
            case WantPvrdma():
                return EthernetCard(key=key, adapter="pvrdma", mac=self.mac(), network=want.network)
            case WantNic():
                mac = SAME_MAC if self.same_macs else self.mac()
                return EthernetCard(key=key, adapter="vmxnet3", mac=mac, network=want.network)
            case _:
                assert_never(want)

    def member(self, part: GroupComponent, want: WantGroup, group: int) -> VmDevice:
        key = next(self.numbers)
        if part.kind is ComponentKind.VGPU:
            return VgpuDevice(key=key, profile=part.profile or "", group=group)
        if part.kind is ComponentKind.SRIOV:
            return EthernetCard(key=key, adapter="sriov", mac=self.mac(), network=want.network, group=group)
        return PciFunctionDevice(key=key, address=None, group=group)

    def mac(self) -> str:
        number = next(self.numbers)
        return f"00:50:56:9f:{number >> 8 & 255:02x}:{number & 255:02x}"


def check_device(host: Host, vm: Vm, want: WantedDevice) -> None:
    """Refuse what the VM's hardware version or its host cannot have."""
    floor = {WantNic: 0, WantPvrdma: 13, WantGroup: DEVICE_GROUPS_HARDWARE}.get(type(want), PCI_HARDWARE)
    if vm.hardware_version < floor:
        raise refusal("vsphere.device-not-supported", f"hardware version {vm.hardware_version} is too low", vm.name)
    match want:
        case WantVgpu() if want.profile not in {profile.name for profile in host.profiles}:
            raise refusal("vsphere.device-backing", f"{host.name} has no profile {want.profile}", vm.name)
        case WantGroup() if want.group not in host.groups:
            raise refusal("vsphere.invalid-argument", f"{host.name} has no device group {want.group.name}", vm.name)
        case WantSriov() if want.physical_function not in {nic.address for nic in host.nics}:
            raise refusal("vsphere.device-backing", f"{host.name} has no function {want.physical_function}", vm.name)
        case WantPassthrough() if want.address not in host.pci:
            raise refusal("vsphere.device-backing", f"{host.name} has no function {want.address}", vm.name)
        case _:
            pass
