"""Turns a host's properties into the core's picture of it: NUMA nodes, PCI functions, GPUs, NICs."""

from __future__ import annotations

import re
from dataclasses import field
from typing import TYPE_CHECKING, Any

from vsphere_ml.core.model.inventory import (
    ClusterRef,
    DatastoreRef,
    DeviceGroup,
    Host,
    HostRef,
    NetworkRef,
    NumaNode,
    PciAddress,
    Pvrdma,
    VgpuProfile,
    VmRef,
)
from vsphere_ml.core.units import Bytes, mib
from vsphere_ml.lazy_dataclass import dataclass
from vsphere_ml.vsphere.inventory import gpus, nics
from vsphere_ml.vsphere.inventory.collect import reference
from vsphere_ml.vsphere.inventory.pci import address, functions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vsphere_ml.core.model.inventory import Vm

LEAN = (
    "name",
    "parent",
    "runtime.connectionState",
    "runtime.inMaintenanceMode",
    "config.product.version",
    "config.product.build",
    "summary.hardware.cpuModel",
    "summary.hardware.cpuMhz",
    "summary.hardware.numCpuCores",
    "summary.hardware.memorySize",
    "config.sharedPassthruGpuTypes",
    "config.graphicsInfo",
    "config.assignableHardwareBinding",  # changes with each power-on, which the answer about the devices does not
)
REACH = ("datastore", "network")  # of every host of the cluster
DEVICES = (
    "hardware.numaInfo.numaNode",
    "hardware.pciDevice",
    "config.pciPassthruInfo",
    "config.network.pnic",
    "config.network.rdmaDevice",
    "config.network.vswitch",
    "capability.deviceRebindWithoutRebootSupported",
    "config.network.proxySwitch",
    "config.graphicsConfig",
    "configManager.graphicsManager",
    "configManager.assignableHardwareManager",
)
DEVICES_PAGE = 100  # hosts at once: each with 500 PCI functions takes half a megabyte

# Newest virtual hardware by ESXi release (VMware KB 1003746), where vCenter does not say.
_NEWEST_HARDWARE = (((9, 0), 22), ((8, 0, 2), 21), ((8, 0), 20), ((7, 0, 2), 19), ((7, 0, 1), 18), ((7, 0), 17))
_OLDEST_HARDWARE = 14


@dataclass(slots=True)
class Extra:
    """What only calls to the host's managers answer."""

    profiles: tuple[VgpuProfile, ...] = ()
    groups: tuple[DeviceGroup, ...] = ()
    system_ids: Mapping[PciAddress, str] = field(default_factory=dict)
    pvrdma: Pvrdma | None = None
    module_options: tuple[tuple[str, str], ...] | None = None
    most_vgpus: int | None = None
    vgpu_manager: str | None = None
    newest_hardware: int | None = None
    no_answer: str = ""


def has_gpus(props: Mapping[str, Any]) -> bool:
    """Return whether a host offers vGPUs or has a graphics device that is more than a console."""
    infos = props.get("config.graphicsInfo") or ()
    return bool(props.get("config.sharedPassthruGpuTypes")) or any(info.graphicsType != "basic" for info in infos)


def lists_no_profile(props: Mapping[str, Any]) -> bool:
    """Return whether a host has graphics devices and offers no vGPU of them."""
    return has_gpus(props) and not props.get("config.sharedPassthruGpuTypes")


def host(
    found: Any,
    props: Mapping[str, Any],
    *,
    cluster: ClusterRef | None,
    reserved_mib: int,
    extra: Extra,
    vms: Mapping[VmRef, Vm],
) -> Host:
    """Return the host; `vms` are the VMs read in detail, which say who holds what."""
    pci = functions(props)
    version = props.get("config.product.version") or ""
    return Host(
        ref=HostRef(reference(found)),
        name=props.get("name", ""),
        cluster=cluster,
        version=version,
        build=props.get("config.product.build") or "",
        cpu_vendor=cpu_vendor(props.get("summary.hardware.cpuModel") or ""),
        cpu_mhz=props.get("summary.hardware.cpuMhz") or 0,
        cores=props.get("summary.hardware.numCpuCores") or 0,
        memory=Bytes(props.get("summary.hardware.memorySize") or 0),
        connected=props.get("runtime.connectionState") == "connected" and not extra.no_answer,
        no_answer=extra.no_answer,
        maintenance=bool(props.get("runtime.inMaintenanceMode")),
        max_hardware_version=extra.newest_hardware or newest_hardware(version),
        memory_reserved=mib(reserved_mib),
        numa=_numa(props),
        pci=pci,
        gpus=gpus.shared_gpus(props, vms),
        passthrough_gpus=gpus.passthrough_gpus(
            props, pci, extra.system_ids, nics.holders(HostRef(reference(found)), props, vms)[0]
        ),
        nics=nics.ports(found, props, pci, extra.system_ids, vms) if pci else (),
        profiles=extra.profiles,
        groups=extra.groups,
        most_vgpus=extra.most_vgpus,
        vgpu_manager=extra.vgpu_manager,
        assignment_policy=gpus.policy(props),
        rebinds=bool(props.get("capability.deviceRebindWithoutRebootSupported")),
        pvrdma=extra.pvrdma,
        module_options=extra.module_options,
        datastores=frozenset(DatastoreRef(reference(each)) for each in props.get("datastore") or ()),
        networks=frozenset(NetworkRef(reference(each)) for each in props.get("network") or ()),
    )


def newest_hardware(version: str) -> int:
    """Return the newest virtual hardware that an ESXi release runs."""
    digits = tuple(int(part) for part in re.findall(r"\d+", version))
    return next((newest for release, newest in _NEWEST_HARDWARE if digits >= release), _OLDEST_HARDWARE)


def cpu_vendor(model: str) -> str:
    """Return `intel` or `amd` from a CPU's name; empty for others."""
    return next((vendor for vendor in ("intel", "amd") if vendor in model.lower()), "")


def _numa(props: Mapping[str, Any]) -> tuple[NumaNode, ...]:
    nodes = props.get("hardware.numaInfo.numaNode") or ()
    threads = sum(len(node.cpuID) for node in nodes)
    cores = props.get("summary.hardware.numCpuCores") or threads
    return tuple(
        NumaNode(
            id=node.typeId & 0xFF,  # a signed byte in the API
            cores=len(node.cpuID) * cores // threads if threads else 0,  # cpuID lists hyperthreads
            memory=Bytes(node.memorySize if node.memorySize is not None else node.memoryRangeLength),
            pci=frozenset(address(each) for each in node.pciId or ()),
        )
        for node in nodes
    )
