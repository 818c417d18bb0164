"""One change in words: what a plan says before it, and progress while it runs."""

# ruff: noqa: C901, PLR0911, PLR0912 - one arm for each kind of change
from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from vsphere_ml.core.model.placement import WantGroup
from vsphere_ml.core.nodes.firstboot import in_words
from vsphere_ml.core.order import count, fold_names, list_first
from vsphere_ml.core.plan.changes import (
    AttachDevices,
    CloneVm,
    CreateFolder,
    CustomizeGuest,
    DeleteFolder,
    DeleteRule,
    DeleteVm,
    DeployTemplate,
    MakeRule,
    MarkVm,
    MoveToFolder,
    MoveToPool,
    NewMac,
    PowerOff,
    PowerOn,
    SetSettings,
    SetSwitchMtu,
    UpgradeHardware,
)
from vsphere_ml.core.plan.describe import CHANGED, TEXTS, device_name, drift_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from vsphere_ml.core.model.placement import WantedDevice
    from vsphere_ml.core.nodes.firstboot import FirstBoot
    from vsphere_ml.core.plan.changes import Change

_SHOWN = 8


def sign(change: Change) -> str:
    """Return `+` for what is made, `~` for what is changed, `-` for what goes, `!` for what stops something running."""
    return CHANGED if isinstance(change, MakeRule) and change.key is not None else TEXTS[type(change)].sign


def verb(change: Change) -> str:
    """Return the change in two words, for lines that are read while they pass."""
    return TEXTS[type(change)].verb


def explain(change: Change) -> str:
    """Return what exactly will be done."""
    match change:
        case CreateFolder():
            return "make this VM folder, marked as ours"
        case DeployTemplate():
            return _deploy(change)
        case CloneVm():
            return _clone(change)
        case MarkVm():
            return "complete its ownership mark (a run was cut there)"
        case MoveToFolder():
            return f"folder {change.was or 'of the data centre'} → {change.path or 'of the data centre'}"
        case MoveToPool():
            return f"resource pool {change.was} → {change.pool_name}"
        case UpgradeHardware() | SetSettings():
            return "; ".join(drift_of(change))
        case AttachDevices():
            return _attach(change)
        case NewMac():
            return f"new MAC instead of {change.mac}, which another VM has"
        case CustomizeGuest():
            return _customize(change)
        case SetSwitchMtu():
            return f"MTU {change.was} → {change.mtu}, for all its port groups"
        case MakeRule():
            return f"keep {list_names(change.vms)} on different hosts"
        case PowerOn():
            return "power on"
        case PowerOff():
            return "power off, after a shutdown of the guest where VMware Tools run"
        case DeleteVm():
            return "delete it with its disks" + (f"; frees {', '.join(change.frees)}" if change.frees else "")
        case DeleteRule() | DeleteFolder():
            return "delete it"
        case _:
            assert_never(change)


def _deploy(change: DeployTemplate) -> str:
    package = change.package
    known = (f"{package.cpus} CPUs, {package.memory}, disk {package.disk}",) if package.cpus else ()
    return ", ".join((f"from {package.name} on {change.host_name}, datastore {change.datastore_name}", *known))


def _clone(change: CloneVm) -> str:
    target = change.target
    size = f"{target.cpus} CPUs, {target.memory}"
    how = "linked clone" if change.snapshot else "clone"
    devices = _devices(target.devices) if change.devices else "its devices once the hardware version is raised"
    store = f", datastore {change.datastore_name}" if change.datastore_name else ""
    store += f", storage policy {target.storage_policy.name}" if target.storage_policy else ""
    return f"{how} of {change.source_name} on {change.host_name}{store}: {size}, {devices}"


def _customize(change: CustomizeGuest) -> str:
    customization = change.customization
    by = f"specification `{customization.spec}`" if customization.spec else "Linux preparation"
    address = in_words(customization.address)
    return f"customize the guest at its first boot: {by}, its name, domain {customization.domain}, address {address}"


def first_boot(answers: FirstBoot) -> str:
    """Return a guest's first-boot data in words, without its contents."""
    if answers.customization is not None:
        return (
            f"first boot: customization by vCenter; user {answers.user}, its key and the host keys are the template's"
        )
    return f"first boot: user {answers.user}, address {in_words(answers.address)}, publishes its SSH host keys"


def _attach(change: AttachDevices) -> str:
    if change.add and change.remove_names:
        return f"{', '.join(change.remove_names)} → {_devices(change.add)}"
    parts = [f"attach {_devices(change.add)}"] if change.add else []
    if change.remove:
        parts.append("remove " + ", ".join(change.remove_names or (count(len(change.remove), "device"),)))
    return "; ".join(parts)


def _devices(wanted: Iterable[WantedDevice]) -> str:
    counted: dict[str, int] = {}
    for each in wanted:
        counted[_device(each)] = counted.get(_device(each), 0) + 1
    return ", ".join(name if count == 1 else f"{count} × {name}" for name, count in counted.items()) or "no devices"


def _device(want: WantedDevice) -> str:
    """Return a device with the network it is on; a group's NIC has one when it is a virtual function."""
    on = f" on {want.network_name}" if isinstance(want, WantGroup) and want.group.has_function else ""
    return f"{device_name(want)}{on}"


def list_names(names: Sequence[str]) -> str:
    """Return names in a row; many are folded as a cluster file writes them: `node-[01-64]`."""
    return ", ".join(names) if len(names) <= _SHOWN else list_first(fold_names(names), _SHOWN)
