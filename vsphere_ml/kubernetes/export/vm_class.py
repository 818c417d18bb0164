"""VM classes, in the two spellings that Supervisors read.

Source: vmware-tanzu/vm-operator of August 2026, docs/concepts/workloads/vm-class.md and api/. A class with a
`configSpec` has its `hardware.devices` ignored (pkg/providers/vsphere/vmprovider_vm.go), so a class has one of both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vsphere_ml.core.errors import NotPossible
from vsphere_ml.core.units import GIB
from vsphere_ml.kubernetes.export.names import Supervisor
from vsphere_ml.kubernetes.export.yaml_text import HexInteger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from vsphere_ml.core.model.placement import WantDynamic
    from vsphere_ml.core.units import Bytes
    from vsphere_ml.kubernetes.export.node_pools import NodePool
    from vsphere_ml.kubernetes.export.site_values import SiteValues


def make_vm_class(pool: NodePool, values: SiteValues) -> dict[str, Any]:
    """Return a pool's VM class.

    NotPossible `kubernetes.same-vgpus` for several vGPUs of one profile where the spelling has one entry a profile.
    """
    memory = _quantity(pool.memory)
    spec: dict[str, Any] = {"hardware": {"cpus": pool.cpus, "memory": memory}}
    _SPELLINGS[values.supervisor](pool, spec)
    # A VM with PCI functions starts with all of its memory reserved alone (vm-operator, pkg/util/devices.go).
    spec["policies"] = {"resources": {"requests": {"memory": memory}}}
    return {
        "apiVersion": f"vmoperator.vmware.com/{values.vm_api}",
        "kind": "VirtualMachineClass",
        "metadata": {"name": pool.name, "namespace": values.vsphere_namespace},
        "spec": spec,
    }


def _quantity(memory: Bytes) -> str:
    return f"{memory // GIB}Gi" if memory % GIB == 0 else f"{memory.mib}Mi"


def _add_devices(pool: NodePool, spec: dict[str, Any]) -> None:
    if len(set(pool.vgpus)) < len(pool.vgpus):
        raise NotPossible(
            reason=f"`vgpuDevices` has one entry a profile, and the node has {len(pool.vgpus)} of "
            f"{pool.vgpus[0].profile}",
            code="kubernetes.same-vgpus",
            target=pool.nodes[0].name,
            hint=f"--supervisor {Supervisor.SINCE_8_0_U2}",
        )
    devices = {
        "vgpuDevices": [{"profileName": each.profile} for each in pool.vgpus],
        "dynamicDirectPathIODevices": [_dynamic_device(each) for each in pool.functions],
    }
    spec["hardware"]["devices"] = {name: each for name, each in devices.items() if each}


def _dynamic_device(device: WantDynamic) -> dict[str, Any]:
    label = {"customLabel": device.label} if device.label else {}
    return {"vendorID": HexInteger(device.vendor), "deviceID": HexInteger(device.device), **label}


def _add_config_spec(pool: NodePool, spec: dict[str, Any]) -> None:
    spec["configSpec"] = {
        "_typeName": "VirtualMachineConfigSpec",
        "memoryReservationLockedToMax": True,
        "deviceChange": [_device_change(backing) for backing in _backings(pool)],
        "extraConfig": [_option_value(key, value) for key, value in pool.settings.items()],
    }


def _backings(pool: NodePool) -> Iterator[dict[str, Any]]:
    for vgpu in pool.vgpus:
        yield {"_typeName": "VirtualPCIPassthroughVmiopBackingInfo", "vgpu": vgpu.profile}
    for function in pool.functions:
        allowed = {"vendorId": HexInteger(function.vendor), "deviceId": HexInteger(function.device)}
        yield {
            "_typeName": "VirtualPCIPassthroughDynamicBackingInfo",
            "deviceName": "",
            "allowedDevice": [{"_typeName": "VirtualPCIPassthroughAllowedDevice", **allowed}],
            **({"customLabel": function.label} if function.label else {}),
        }


def _device_change(backing: Mapping[str, Any]) -> dict[str, Any]:
    device = {"_typeName": "VirtualPCIPassthrough", "key": 0, "backing": backing}
    return {"_typeName": "VirtualDeviceConfigSpec", "operation": "add", "device": device}


def _option_value(key: str, value: str) -> dict[str, Any]:
    return {"_typeName": "OptionValue", "key": key, "value": {"_typeName": "string", "_value": value}}


_SPELLINGS: Mapping[Supervisor, Callable[[NodePool, dict[str, Any]], None]] = {
    Supervisor.BEFORE_8_0_U2: _add_devices,
    Supervisor.SINCE_8_0_U2: _add_config_spec,
}
