"""Changes in words: as a noun, for sentences about what became of them, and as what lacks without them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, assert_never

from vsphere_ml.core.model.placement import (
    WantDynamic,
    WantGroup,
    WantNic,
    WantPassthrough,
    WantPvrdma,
    WantSriov,
    WantVgpu,
)
from vsphere_ml.core.plan.changes import (
    AttachDevices,
    CloneVm,
    CreateFolder,
    CustomizeGuest,
    DeleteFolder,
    DeleteRule,
    DeleteVm,
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

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from vsphere_ml.core.model.placement import WantedDevice
    from vsphere_ml.core.plan.changes import Change


def describe(change: Change) -> str:
    """Return the change as a noun with its object, such as `clone of node-3`."""
    match change:
        case CreateFolder():
            return f"making of folder {change.path}"
        case MakeRule():
            return f"making of rule {change.name}"
        case DeleteRule():
            return f"deletion of rule {change.name}"
        case DeleteFolder():
            return f"deletion of folder {change.path}"
        case SetSwitchMtu():
            return f"MTU of switch {change.name}"
        case _:
            return f"{_of_a_vm(change)} of {change.vm}"


def _of_a_vm(  # noqa: C901, PLR0911, PLR0912 - one arm for each kind of change
    change: CloneVm
    | MarkVm
    | MoveToFolder
    | MoveToPool
    | UpgradeHardware
    | SetSettings
    | AttachDevices
    | NewMac
    | CustomizeGuest
    | PowerOn
    | PowerOff
    | DeleteVm,
) -> str:
    match change:
        case CloneVm():
            return "clone"
        case MarkVm():
            return "ownership mark"
        case MoveToFolder():
            return "change of folder"
        case MoveToPool():
            return "change of resource pool"
        case UpgradeHardware():
            return "hardware upgrade"
        case SetSettings():
            return "settings"
        case AttachDevices():
            return "devices"
        case NewMac():
            return "new MAC"
        case CustomizeGuest():
            return "customization"
        case PowerOn():
            return "power-on"
        case PowerOff():
            return "power-off"
        case DeleteVm():
            return "deletion"
        case _:
            assert_never(change)


def drift_of(change: Change) -> tuple[str, ...]:  # noqa: C901, PLR0911, PLR0912 - one arm for each kind of change
    """Return what is lacking as long as this change is not made, in words."""
    match change:
        case CloneVm():
            return ("is not there",)
        case MarkVm():
            return ("its ownership attribute is not set",)
        case MoveToFolder():
            return (f"{_folder(change.was)} → {_folder(change.path)}",)
        case MoveToPool():
            return (f"resource pool {change.was} → {change.pool_name}",)
        case UpgradeHardware():
            return (f"hardware version {'lower' if change.was is None else change.was} → {change.version}",)
        case SetSettings():
            return change.drift
        case AttachDevices():
            missing = tuple(f"{device_name(want)} is missing" for want in change.add)
            return (*missing, *(f"unexpected {name}" for name in change.remove_names))
        case NewMac():
            return (f"its MAC {change.mac} is another VM's too",)
        case CustomizeGuest():
            return ("its guest's customization is not set",)
        case PowerOn():
            return ("is powered off",)
        case PowerOff():
            return ("must be powered off to be changed",)
        case CreateFolder() | MakeRule():
            return ("is not there",) if not isinstance(change, MakeRule) or change.key is None else ("differs",)
        case SetSwitchMtu():
            return (f"MTU {change.was} → {change.mtu}",)
        case DeleteVm() | DeleteRule() | DeleteFolder():
            return ("is still there",)
        case _:
            assert_never(change)


def _folder(path: str) -> str:
    return f"folder {path}" if path else "the data centre's VM folder"


def drift_in(changes: Iterable[Change]) -> Iterator[tuple[str, str]]:
    """Yield what lacks as long as these changes are not made, each after the object that lacks it.

    A VM that must stop to be changed runs: its start afterwards makes up for no lack.
    """
    every = tuple(changes)
    stopped = {change.vm for change in every if isinstance(change, PowerOff)}
    deleted = {change.vm for change in every if isinstance(change, DeleteVm)}
    for change in every:
        restarts = isinstance(change, PowerOn) and change.vm in stopped
        stops_for_good = isinstance(change, PowerOff) and change.vm in deleted
        if not restarts and not stops_for_good:
            yield from ((object_name(change), missing) for missing in drift_of(change))


_TITLES = {
    "CloneVm": "clone",
    "MarkVm": "ownership mark",
    "NewMac": "new MAC",
    "PowerOn": "power-on",
    "PowerOff": "power-off",
    "SetSettings": "settings",
    "AttachDevices": "devices",
    "UpgradeHardware": "hardware upgrade",
    "CustomizeGuest": "customization",
    "MoveToFolder": "change of folder",
    "MoveToPool": "change of resource pool",
    "MakeRule": "making of rule",
    "CreateFolder": "making of folder",
    "SetSwitchMtu": "MTU of switch",
    "DeleteVm": "deletion",
    "DeleteRule": "deletion of rule",
    "DeleteFolder": "deletion of folder",
}


def title(kind: str) -> str:
    """Return a kind of change, given by its name in a saved plan, as a noun; `SetMig` is `set mig`."""
    plain = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", kind).lower()
    return _TITLES.get(kind, plain)


def is_off(vm: str) -> str:
    """Return that a VM which ran before is off, and how to start it."""
    return f"{vm} was running and is off now; `govc vm.power -on {vm}` starts it as it is"


def device_name(want: WantedDevice) -> str:  # noqa: PLR0911 - one arm for each kind
    """Return a wanted device by the name that vSphere's own pages give it."""
    match want:
        case WantVgpu():
            return f"vGPU {want.profile}"
        case WantGroup():
            return f"device group {want.group.name}"
        case WantSriov():
            return f"SR-IOV function of {want.physical_function} on {want.network_name}"
        case WantPassthrough():
            return f"DirectPath {want.name} {want.address}"
        case WantDynamic():
            label = f" labelled {want.label}" if want.label else ""
            return f"dynamic DirectPath {want.vendor:04x}:{want.device:04x}{label}"
        case WantPvrdma():
            return f"PVRDMA on {want.network_name}"
        case WantNic():
            return f"vmxnet3 on {want.network_name}"
        case _:
            assert_never(want)


def object_name(change: Change) -> str:
    """Return what a change is about: a VM's name, or `folder …`, `rule …` and `switch …`."""
    match change:
        case CreateFolder() | DeleteFolder():
            return f"folder {change.path}"
        case MakeRule() | DeleteRule():
            return f"rule {change.name}"
        case SetSwitchMtu():
            return f"switch {change.name}"
        case _:
            return change.vm


def clip(text: str, most: int = 60) -> str:
    """Return a text fit for a message: printable, and not too long."""
    plain = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text[: most + 1])
    return plain if len(plain) <= most else f"{plain[:most]}…"
