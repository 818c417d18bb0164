"""The closed union of everything vsml does to an ESXi host, in the order it may come."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from vsphere_ml.core.model.host_settings import AccessMethod
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from vsphere_ml.core.model.inventory import HostRef, PciAddress, VmRef


@dataclass(frozen=True, slots=True, kw_only=True)
class _OfHost:
    host: HostRef
    host_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _OfVm(_OfHost):
    vm: VmRef
    vm_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteRecord(_OfHost):
    """Write down on the host (a custom attribute) what was there before; an empty text takes it away."""

    text: str
    over: bool = False  # at the end: nothing is to be resumed


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteRunning(_OfVm):
    """Write down on the VM (a custom attribute) that it ran, and for which host it is stopped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShutDown(_OfVm):
    """Shut the guest down through VMware Tools; with `hard`, power the VM off when that does not do."""

    hard: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EnterMaintenance(_OfHost):
    """Enter maintenance mode, meanwhile DRS migrates some VMs."""

    migrated: tuple[str, ...] = ()  # their names


@dataclass(frozen=True, slots=True, kw_only=True)
class SetKernel(_OfHost):
    """Configure `atsSupport` for the next boot."""

    value: str  # TRUE, FALSE
    access: AccessMethod


@dataclass(frozen=True, slots=True, kw_only=True)
class SetFirmware(_OfHost):
    """Configure `ATS_ENABLED` of a port for the next boot, through the host's shell or the guest's."""

    port: PciAddress
    device: str
    value: bool
    access: AccessMethod
    guest: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetGraphics(_OfHost):
    """Set the default graphics type, and those of single GPUs, for the next boot."""

    value: str
    gpus: tuple[tuple[str, str], ...] = ()  # address and type


@dataclass(frozen=True, slots=True, kw_only=True)
class SetFunctions(_OfHost):
    """Have a port hand out so many virtual functions; 0 switches SR-IOV off."""

    port: PciAddress
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SetPassthrough(_OfHost):
    """Hand a function to VMs whole, or no more; `at_once` where the host says it can do so without a reboot."""

    port: PciAddress
    value: bool
    at_once: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SetMig(_OfHost):
    """Switch a GPU's MIG mode with `nvidia-smi`, through the host's shell; Ampere has it after a reboot only."""

    gpu: PciAddress
    value: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SetDriver(_OfHost):
    """Set parameters of a NIC driver for the next boot; what else its one string of options has, stays."""

    module: str
    keys: tuple[tuple[str, str], ...]  # parameter and value


@dataclass(frozen=True, slots=True, kw_only=True)
class SetVmknic(_OfHost):
    """Tag a VMkernel adapter for PVRDMA, by the advanced option Net.PVRDMAVmknic."""

    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SetFirewall(_OfHost):
    """Open or close the host's firewall for PVRDMA."""

    value: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Reboot(_OfHost):
    """Reboot, and wait until the host answers vCenter with a new boot time."""

    boot_time: str  # that of the boot which is to end


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitHost(_OfHost):
    """Wait for a host that an earlier run has rebooted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExitMaintenance(_OfHost):
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerOnAgain(_OfVm):
    """Power on a VM that ran before, and forget the note about it."""


HostChange = (
    WriteRecord
    | NoteRunning
    | ShutDown
    | EnterMaintenance
    | SetKernel
    | SetFirmware
    | SetGraphics
    | SetFunctions
    | SetPassthrough
    | SetMig
    | SetDriver
    | SetVmknic
    | SetFirewall
    | Reboot
    | AwaitHost
    | ExitMaintenance
    | PowerOnAgain
)
Setting = (
    SetKernel | SetFirmware | SetGraphics | SetFunctions | SetPassthrough | SetMig | SetDriver | SetVmknic | SetFirewall
)
ByShell = SetFirmware | SetMig  # made through a shell, not by the vSphere API


def describe_host_change(change: HostChange) -> str:  # noqa: C901, PLR0911, PLR0912 - one arm for each kind of change
    """Return what is done, without the host's name."""
    match change:
        case WriteRecord():
            if not change.text:
                return "take the record of former values away"
            return "write down that maintenance mode is over" if change.over else "write down the former values"
        case NoteRunning():
            return f"note that {change.vm_name} runs"
        case ShutDown():
            return f"shut {change.vm_name} down"
        case EnterMaintenance():
            moving = f" while DRS migrates {', '.join(change.migrated)}" if change.migrated else ""
            return f"enter maintenance mode{moving}"
        case SetKernel():
            return f"set kernel setting atsSupport to {change.value} (by {change.access})"
        case SetFirmware():
            return f"set ATS_ENABLED of {change.port} ({change.device}) to {change.value} (by {change.access})"
        case SetGraphics():
            gpus = (f", that of {gpu} to {kind}" for gpu, kind in change.gpus)
            return f"set the default graphics type to {change.value}{''.join(gpus)}"
        case SetFunctions():
            return f"have {change.port} hand out {change.count} virtual functions"
        case SetPassthrough():
            now = ", at once" if change.at_once else ""
            return f"switch passthrough of {change.port} {'on' if change.value else 'off'}{now}"
        case SetMig():
            return f"switch MIG mode of GPU {change.gpu} {'on' if change.value else 'off'} (by {AccessMethod.HOST})"
        case SetDriver():
            keys = " ".join(f"{name}={value}" for name, value in change.keys)
            return f"set {keys} of driver {change.module}, its other options as they are"
        case SetVmknic():
            return f"tag {change.value or 'no VMkernel adapter'} for PVRDMA (Net.PVRDMAVmknic)"
        case SetFirewall():
            return f"{'open' if change.value else 'close'} the firewall for PVRDMA"
        case Reboot():
            return "reboot"
        case AwaitHost():
            return "wait for the host, which was rebooted"
        case ExitMaintenance():
            return "leave maintenance mode"
        case PowerOnAgain():
            return f"power {change.vm_name} on"
        case _:
            assert_never(change)
