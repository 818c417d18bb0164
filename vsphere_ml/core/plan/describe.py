"""Changes in words: as a noun, for sentences about what became of them, and as what is missing without them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple, assert_never

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

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from vsphere_ml.core.model.placement import WantedDevice
    from vsphere_ml.core.plan.changes import Change


ADDED, CHANGED, REMOVED, INTERRUPTED = "+", "~", "-", "!"


class _ChangeText(NamedTuple):
    """A kind of change in words: all that differs from kind to kind."""

    sign: str  # in a plan
    noun: str  # of what became of it: `clone` of node-3
    verb: str  # while it runs
    doing: str  # where it fails, with the change as {0}
    thing: str = ""  # what it is about, where that is no VM


TEXTS: Mapping[type[Change], _ChangeText] = {
    CreateFolder: _ChangeText(ADDED, "making", "make", "making folder `{0.path}`", "folder"),
    DeployTemplate: _ChangeText(
        ADDED, "deployment", "deploy", "deploying template `{0.name}` from {0.package.name}", "template"
    ),
    CloneVm: _ChangeText(ADDED, "clone", "clone", "cloning `{0.source_name}` to `{0.vm}`"),
    MarkVm: _ChangeText(CHANGED, "ownership mark", "mark", "marking `{0.vm}`"),
    MoveToFolder: _ChangeText(CHANGED, "change of folder", "move", "moving `{0.vm}` to folder `{0.path}`"),
    MoveToPool: _ChangeText(
        CHANGED, "change of resource pool", "move", "moving `{0.vm}` to resource pool `{0.pool_name}`"
    ),
    UpgradeHardware: _ChangeText(
        CHANGED, "hardware upgrade", "upgrade hardware", "raising `{0.vm}` to hardware version {0.version}"
    ),
    SetSettings: _ChangeText(CHANGED, "settings", "set up", "configuring `{0.vm}`"),
    AttachDevices: _ChangeText(CHANGED, "devices", "attach devices", "changing the devices of `{0.vm}`"),
    NewMac: _ChangeText(CHANGED, "new MAC", "new MAC", "giving `{0.vm}` a new MAC"),
    CustomizeGuest: _ChangeText(CHANGED, "customization", "customize", "customizing the guest of `{0.vm}`"),
    MakeRule: _ChangeText(ADDED, "making", "make", "making rule `{0.name}`", "rule"),
    SetSwitchMtu: _ChangeText(CHANGED, "MTU", "raise MTU", "setting the MTU of switch `{0.name}`", "switch"),
    PowerOn: _ChangeText(CHANGED, "power-on", "power on", "powering on `{0.vm}`"),
    PowerOff: _ChangeText(INTERRUPTED, "power-off", "power off", "powering off `{0.vm}`"),
    DeleteVm: _ChangeText(REMOVED, "deletion", "delete", "deleting `{0.vm}`"),
    DeleteRule: _ChangeText(REMOVED, "deletion", "delete", "deleting rule `{0.name}`", "rule"),
    DeleteFolder: _ChangeText(REMOVED, "deletion", "delete", "deleting folder `{0.path}`", "folder"),
}
_KINDS = {kind.__name__: text for kind, text in TEXTS.items()}


def describe(change: Change) -> str:
    """Return the change as a noun with its object, such as `clone of node-3`."""
    return f"{TEXTS[type(change)].noun} of {object_name(change)}"


def noun(kind: str) -> str:
    """Return the noun of a kind of change, by its name; empty of changes to hosts."""
    return _KINDS[kind].noun if kind in _KINDS else ""


def describe_saved(kind: str, fields: Mapping[str, Any]) -> str:
    """Return the same of a change by its kind and fields in a saved plan; `SetMig` of a host is `set mig of` it."""
    plain = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", kind).lower()
    text = _KINDS.get(kind, _ChangeText("", plain, "", ""))
    return f"{text.noun} of {_name_object(text, fields)}"


def object_name(change: Change) -> str:
    """Return what a change is about: a VM's name, or `folder …`, `rule …` and `switch …`."""
    names = {key: getattr(change, key, "") for key in _NAMES}
    return _name_object(TEXTS[type(change)], names)


_NAMES = ("vm", "name", "path", "host_name")


def _name_object(text: _ChangeText, fields: Mapping[str, Any]) -> str:
    name = next((str(fields[key]) for key in _NAMES if fields.get(key)), "?")
    return f"{text.thing} {name}" if text.thing else name


def drift_of(change: Change) -> tuple[str, ...]:  # noqa: C901, PLR0911, PLR0912 - one arm for each kind of change
    """Return what is missing as long as this change is not made, in words."""
    match change:
        case CloneVm() | DeployTemplate():
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
            return tuple(map(str, change.drift))
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
    """Yield what is missing as long as these changes are not made, each after its object.

    A VM that must stop to be changed runs: its start afterwards adds nothing that is missing.
    """
    every = tuple(changes)
    stopped = {change.vm for change in every if isinstance(change, PowerOff)}
    deleted = {change.vm for change in every if isinstance(change, DeleteVm)}
    for change in every:
        restarts = isinstance(change, PowerOn) and change.vm in stopped
        stops_for_good = isinstance(change, PowerOff) and change.vm in deleted
        if not restarts and not stops_for_good:
            yield from ((object_name(change), missing) for missing in drift_of(change))


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


def clip(text: str, most: int = 60) -> str:
    """Return a text fit for a message: printable, and not too long."""
    plain = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text[: most + 1])
    return plain if len(plain) <= most else f"{plain[:most]}…"
