"""What is written is held against the fields that the projects' own types have, and read back.

Sources: vmware-tanzu/vm-operator, api/v1alpha1 to v1alpha6, virtualmachineclass_types.go; Cluster API v1beta1, Cluster;
NVIDIA/gpu-operator, values.yaml; Mellanox/network-operator, values.yaml and nicclusterpolicy_types.go.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import yaml

from vsphere_ml.core.diagnostics import Diagnostic, Severity
from vsphere_ml.kubernetes.export.operators import nic_ids
from vsphere_ml.kubernetes.lint import lint_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from vsphere_ml.kubernetes.export.node_pools import NodePool

# A dict has no other fields than these; a list's items are all of the one kind; a type is that of a plain value.
_OBJECT = {"apiVersion": str, "kind": str}
_NAMED = {**_OBJECT, "metadata": {"name": str, "namespace": str, "labels": dict}}
_ALLOWED = {"_typeName": str, "vendorId": int, "deviceId": int}
_BACKING = {"_typeName": str, "vgpu": str, "deviceName": str, "allowedDevice": [_ALLOWED], "customLabel": str}
_CHANGE = {"_typeName": str, "operation": str, "device": {"_typeName": str, "key": int, "backing": _BACKING}}
_OPTION = {"_typeName": str, "key": str, "value": {"_typeName": str, "_value": str}}
_DYNAMIC = {"vendorID": int, "deviceID": int, "customLabel": str}
_VARIABLE = {"name": str, "value": object}
_METADATA = {"metadata": {"annotations": dict}}
_IMAGE = {"image": str, "repository": str, "version": str}
_PLUGIN = {**_IMAGE, "config": str}
FIELDS: Mapping[str, Any] = {
    "vm-class": {
        **_NAMED,
        "spec": {
            "hardware": {
                "cpus": int,
                "memory": str,
                "devices": {"vgpuDevices": [{"profileName": str}], "dynamicDirectPathIODevices": [_DYNAMIC]},
            },
            "configSpec": {
                "_typeName": str,
                "memoryReservationLockedToMax": bool,
                "deviceChange": [_CHANGE],
                "extraConfig": [_OPTION],
            },
            "policies": {"resources": {"requests": {"memory": str}}},
        },
    },
    "cluster": {
        **_NAMED,
        "spec": {
            "clusterNetwork": {"pods": {"cidrBlocks": [str]}, "services": {"cidrBlocks": [str]}},
            "topology": {
                "class": str,
                "version": str,
                "controlPlane": {"replicas": int, **_METADATA},
                "workers": {
                    "machineDeployments": [
                        {
                            "class": str,
                            "name": str,
                            "replicas": int,
                            "variables": {"overrides": [_VARIABLE]},
                            **_METADATA,
                        }
                    ]
                },
                "variables": [_VARIABLE],
            },
        },
    },
    "namespaces": _NAMED,
    "network-operator": {"nfd": {"enabled": bool}, "sriovNetworkOperator": {"enabled": bool}},
    "nic-policy": {
        **_NAMED,
        "spec": {
            "rdmaSharedDevicePlugin": _PLUGIN,
            "sriovDevicePlugin": _PLUGIN,
            "secondaryNetwork": {"cniPlugins": _IMAGE, "multus": _IMAGE},
        },
    },
    "gpu-operator": {
        "nfd": {"enabled": bool},
        "driver": {
            **_IMAGE,
            "enabled": bool,
            "imagePullSecrets": [str],
            "licensingConfig": {"secretName": str},
        },
    },
    "mpijob": object,  # `vsml k8s lint` knows its fields
}


def find_mistakes(
    part: str, text: str, objects: Sequence[Mapping[str, Any]], pools: Sequence[NodePool]
) -> Iterator[Diagnostic]:
    """Yield what a reader of the text would find otherwise than it was meant."""
    read = list(yaml.safe_load_all(text))
    if read != list(objects):
        yield _mistake("", "YAML reads other values than were written")
    for each in read:
        yield from _find_wrong_fields(each, FIELDS[part], "")
    yield from _find_foreign_nics(read, pools) if part == "nic-policy" else ()
    yield from lint_file(text, "mpijob.yaml").diagnostics if part == "mpijob" else ()


def _find_wrong_fields(value: object, fields: Any, path: str) -> Iterator[Diagnostic]:
    if isinstance(fields, dict) and isinstance(value, dict):
        for name, each in value.items():
            if name not in fields:
                yield _mistake(f"{path}.{name}", "there is no such field")
            else:
                yield from _find_wrong_fields(each, fields[name], f"{path}.{name}")
    elif isinstance(fields, list) and isinstance(value, list):
        for index, each in enumerate(value):
            yield from _find_wrong_fields(each, fields[0], f"{path}[{index}]")
    elif not isinstance(fields, type) or not isinstance(value, fields) or (fields is int and isinstance(value, bool)):
        yield _mistake(path, f"`{value}` is of another type")


def _find_foreign_nics(policies: Sequence[Mapping[str, Any]], pools: Sequence[NodePool]) -> Iterator[Diagnostic]:
    """Yield the device ids that the plugin would look for in vain: the VM classes have none of them."""
    there = {device for _, device in nic_ids(pools)}
    for policy in policies:
        for name, plugin in policy["spec"].items():
            config = json.loads(plugin["config"]) if "config" in plugin else {}
            asked = {device for found in config.values() for each in found for device in _device_ids(each["selectors"])}
            for device in sorted(asked - there):
                yield _mistake(f"spec.{name}", f"no VM class has a NIC with the device id {device}")


def _device_ids(selectors: Mapping[str, list[str]]) -> list[str]:
    return [*selectors.get("deviceIDs", ()), *selectors.get("devices", ())]


def _mistake(path: str, message: str) -> Diagnostic:
    return Diagnostic(severity=Severity.ERROR, target=path.removeprefix("."), message=message)
