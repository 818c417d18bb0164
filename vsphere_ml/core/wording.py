"""A change as a noun, for sentences about what became of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from vsphere_ml.core.changes import (
    AttachDevices,
    CloneVm,
    CreateFolder,
    DeleteFolder,
    DeleteRule,
    DeleteVm,
    MakeRule,
    MarkVm,
    NewMac,
    PowerOff,
    PowerOn,
    SetSettings,
    UpgradeHardware,
)

if TYPE_CHECKING:
    from vsphere_ml.core.changes import Change


def describe(change: Change) -> str:
    """Return the change as a noun with its object, such as `clone of node-3`."""
    match change:
        case CreateFolder():
            return f"making of folder {change.path}"
        case MakeRule():
            return f"making of rule {change.name}"
        case DeleteRule():
            return f"removal of rule {change.name}"
        case DeleteFolder():
            return f"removal of folder {change.path}"
        case _:
            return f"{_of_a_vm(change)} of {change.vm}"


def _of_a_vm(  # noqa: PLR0911 - one arm for each kind of change
    change: CloneVm | MarkVm | UpgradeHardware | SetSettings | AttachDevices | NewMac | PowerOn | PowerOff | DeleteVm,
) -> str:
    match change:
        case CloneVm():
            return "clone"
        case MarkVm():
            return "ownership mark"
        case UpgradeHardware():
            return "hardware upgrade"
        case SetSettings():
            return "settings"
        case AttachDevices():
            return "devices"
        case NewMac():
            return "new MAC"
        case PowerOn():
            return "power-on"
        case PowerOff():
            return "power-off"
        case DeleteVm():
            return "removal"
        case _:
            assert_never(change)
