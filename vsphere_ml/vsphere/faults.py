"""One table from what vCenter answers to what a person reads and a script tests.

Which kind of fault a real vCenter picks, and its sentences, can differ between releases; an unknown fault keeps
vCenter's own words under `vsphere.task-failed`.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from pyVmomi import vim, vmodl

from vsphere_ml.core.errors import VSphereError
from vsphere_ml.core.plan.describe import clip

if TYPE_CHECKING:
    from collections.abc import Mapping


class _Meaning(NamedTuple):
    code: str
    message: str
    hint: str = ""


# The first entry whose type fits wins, so subclasses stand before their bases.
_TABLE: tuple[tuple[type[BaseException], _Meaning], ...] = (
    (
        vim.fault.InsufficientGraphicsResourcesFault,
        _Meaning(
            "vsphere.graphics-capacity",
            "no GPU can hold the VM's vGPU",
            "see who holds the GPUs with `vsml inventory`",
        ),
    ),
    (
        vim.fault.NoCompatibleHost,
        _Meaning("vsphere.no-compatible-host", "no host can run the VM", "the reasons are listed host by host"),
    ),
    (
        vim.fault.DuplicateName,
        _Meaning("vsphere.duplicate-name", "the name is taken", "run the command again: it looks first"),
    ),
    (
        vim.fault.NoPermission,
        _Meaning(
            "vsphere.no-permission", "the account has too few privileges", "docs/reference/privileges.md lists them"
        ),
    ),
    (
        vim.fault.InsufficientMemoryResourcesFault,
        _Meaning(
            "vsphere.memory-capacity",
            "the host has too little unreserved memory",
            "VMs with GPUs reserve all their memory; lower `nodes.memory` or free the host",
        ),
    ),
    (
        vim.fault.InsufficientHostMemoryCapacityFault,
        _Meaning("vsphere.memory-capacity", "the host has too little memory", "lower `nodes.memory`"),
    ),
    (
        vim.fault.InsufficientFailoverResourcesFault,
        _Meaning(
            "vsphere.ha-admission",
            "vSphere HA keeps what is left for a host's failure",
            "free memory on the cluster, or lower what HA keeps (Configure > vSphere Availability > Admission Control)",
        ),
    ),
    (
        vim.fault.InsufficientResourcesFault,
        _Meaning("vsphere.capacity", "the host or pool is out of resources", "see `vsml inventory`"),
    ),
    (
        vim.fault.InvalidDeviceBacking,
        _Meaning(
            "vsphere.device-backing",
            "the host cannot back one of the VM's devices",
            "compare profile and functions with `vsml inventory`",
        ),
    ),
    (
        vim.fault.DeviceNotSupported,
        _Meaning("vsphere.device-not-supported", "the host or the hardware version does not support a device"),
    ),
    (vim.fault.InvalidDeviceSpec, _Meaning("vsphere.device-spec", "vCenter refuses a device of the VM")),
    (
        vim.fault.InvalidPowerState,
        _Meaning("vsphere.power-state", "the VM is not in the power state this needs", "run the command again"),
    ),
    (
        vim.fault.InvalidDatastore,
        _Meaning("vsphere.datastore", "the datastore cannot be used", "check `location.datastore`"),
    ),
    (
        vim.fault.NoDiskSpace,
        _Meaning(
            "vsphere.no-disk-space", "the datastore is full", "free space, or choose another `location.datastore`"
        ),
    ),
    (
        vim.fault.TaskInProgress,
        _Meaning("vsphere.busy", "another task works on it", "wait for that task and run the command again"),
    ),
    (
        vim.fault.ConcurrentAccess,
        _Meaning("vsphere.busy", "somebody else changed it at the same moment", "run the command again"),
    ),
    (
        vim.fault.GenericVmConfigFault,
        _Meaning("vsphere.vm-config", "the VM's configuration cannot be used"),
    ),
    (vim.fault.VmConfigFault, _Meaning("vsphere.vm-config", "the VM's configuration cannot be used")),
    (
        vmodl.fault.HostCommunication,
        _Meaning("vsphere.host-not-connected", "the host does not answer vCenter", "reconnect the host"),
    ),
    (vim.fault.InvalidState, _Meaning("vsphere.invalid-state", "the object is not in a state that allows this")),
    (
        vim.fault.NotAuthenticated,
        _Meaning("vcenter.session", "vCenter ended the session", "run the command again"),
    ),
    (
        vmodl.fault.ManagedObjectNotFound,
        _Meaning("vsphere.not-found", "the object is gone", "run the command again: it looks first"),
    ),
    (
        vmodl.fault.MethodNotFound,
        _Meaning("vsphere.not-supported", "this vCenter does not know the call"),
    ),
    (vmodl.fault.NotSupported, _Meaning("vsphere.not-supported", "vCenter does not support this here")),
    (vmodl.fault.InvalidArgument, _Meaning("vsphere.invalid-argument", "vCenter refuses a value")),
    (vmodl.fault.RequestCanceled, _Meaning("vsphere.canceled", "somebody cancelled the task")),
)
# ESXi names NVIDIA's plug-in where a vGPU cannot start: a file's name, which is the same in every language. Causes, by
# Frank Denneman's vGPU troubleshooting: graphics not Shared Direct, memory not reserved, SR-IOV off in the BIOS; and,
# by NVIDIA's vGPU user guide, what a GPU refuses: vGPUs of other sizes, a profile that is not of its MIG mode.
_VGPU_PLUGIN = "libnvidia-vgx.so"
_VGPU_START = _Meaning(
    "vsphere.vgpu-start",
    "NVIDIA's vGPU manager could not start the vGPU",
    "compare with `vsml inventory`: graphics Shared Direct, the profile among those offered, no vGPUs of other sizes "
    "on the GPU, MIG mode as the profile wants it, all memory reserved; then SR-IOV in the host's BIOS, and the reason "
    "in the VM's vmware.log",
)
# What vCenter says when a host does not answer it, whatever it shows the host as.
AWAY = (
    vmodl.fault.HostCommunication,
    vmodl.fault.SystemError,
    vim.fault.HostConnectFault,
    vim.fault.HostConfigFault,
    vim.fault.Timedout,
)
_LONGEST = 1000  # characters of vCenter's own words
_OTHER = _Meaning("vsphere.task-failed", "vCenter could not do it")


def translate(
    fault: BaseException, target: str, action: str = "", names: Mapping[str, str] = MappingProxyType({})
) -> VSphereError:
    """Return the error for a fault of vCenter's, raised or found in a task.

    `action` is what was tried, as a gerund; `names` gives objects' names by their ids.
    """
    if isinstance(fault, VSphereError):
        return fault
    meaning = _find_meaning(fault)
    sentence = " ".join(filter(None, (meaning.message, _own_words(fault, names))))
    error = VSphereError(
        f"{action} failed: {sentence}" if action else sentence,
        code=meaning.code,
        target=target,
        hint=meaning.hint,
        details=_details(fault, names),
    )
    error.action = action
    error.__cause__ = fault
    return error


def _find_meaning(fault: BaseException) -> _Meaning:
    said = (getattr(fault, "reason", None), getattr(fault, "msg", None))
    messages = (getattr(each, "message", None) for each in getattr(fault, "faultMessage", None) or ())
    if any(_VGPU_PLUGIN in str(each) for each in (*said, *messages)):
        return _VGPU_START
    return next((meaning for kind, meaning in _TABLE if isinstance(fault, kind)), _OTHER)


def words(fault: BaseException) -> str:
    """Return vCenter's sentence, with the fault's name."""
    name, said = type(fault).__name__.rpartition(".")[2], _own_words(fault, {})[1:-1]
    return name if said == name else f"{name} ({said})"


def _own_words(fault: BaseException, names: Mapping[str, str]) -> str:
    """Return vCenter's sentence in parentheses, or the fault's name when it has none."""
    text = str(getattr(fault, "msg", "") or "").strip()
    # The simulator's sentence is its Go type's name, `*types.DuplicateName`.
    if not text or text.startswith("*types."):
        text = "; ".join(_fields(fault, names)) or type(fault).__name__.rpartition(".")[2]
    return f"({clip(text, _LONGEST).rstrip('.')})"


# Fields that say what a sentence would.
_TELLING = (
    (vmodl.fault.InvalidArgument, "invalidProperty", "in {}"),
    (vim.fault.GenericVmConfigFault, "reason", "{}"),
    (vim.fault.InvalidVmConfig, "property", "in {}"),
    (vim.fault.DuplicateName, "name", "`{}`"),
)


def _fields(fault: Any, names: Mapping[str, str]) -> list[str]:
    if isinstance(fault, vim.fault.NoPermission):
        return [_privileges(fault, names)]
    values = ((form, getattr(fault, field, None)) for kind, field, form in _TELLING if isinstance(fault, kind))
    return [form.format(value) for form, value in values if value]


def _privileges(fault: Any, names: Mapping[str, str]) -> str:
    missing = [fault.privilegeId, *(p for entry in fault.missingPrivileges or () for p in entry.privilegeIds)]
    privileges = ", ".join(dict.fromkeys(str(name) for name in missing if name))
    return f"privilege {privileges or 'unknown'} on {_name(fault.object, names)}"


def _name(found: object, names: Mapping[str, str]) -> str:
    reference = str(getattr(found, "_moId", None) or "an unnamed object")
    return names.get(reference, reference)


def _details(fault: Any, names: Mapping[str, str]) -> tuple[str, ...]:
    """Return what goes with the sentence: each host's reason, the privilege and object, vCenter's fault messages."""
    details = _fields(fault, names) if isinstance(fault, vim.fault.NoPermission) else []
    if isinstance(fault, vim.fault.NoCompatibleHost):
        for host, reason in zip(fault.host or (), fault.error or (), strict=False):
            details.append(f"{_name(host, names)}: {_own_words(_unwrap_fault(reason), names)[1:-1]}")
    details += [str(m.message) for m in getattr(fault, "faultMessage", None) or () if getattr(m, "message", None)]
    return tuple(dict.fromkeys(details))


def _unwrap_fault(reason: object) -> BaseException:
    inner = getattr(reason, "fault", reason)
    if isinstance(inner, BaseException):
        text = getattr(reason, "localizedMessage", None)
        if text and not getattr(inner, "msg", None):
            inner.msg = text  # type: ignore[attr-defined]
        return inner
    return RuntimeError(str(reason))
