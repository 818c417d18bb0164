"""A cluster's VMs as resources of Terraform's vSphere provider, with the blocks that import them.

By the provider's documentation (vmware/vsphere 2.16, resource virtual_machine): imported disks are labelled
`Hard Disk N`, SR-IOV interfaces come after the others, a disk's size is whole GiB. It has no argument for vGPUs, vendor
device groups or dynamic DirectPath.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from vsphere_ml.core.model.inventory import EthernetCard, PciFunctionDevice, VgpuDevice
from vsphere_ml.core.model.marks import CLUSTER_KEY, NODE_KEY, is_marked
from vsphere_ml.core.placement.resolve import resolve
from vsphere_ml.core.report.export import hcl
from vsphere_ml.core.units import gib

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from vsphere_ml.core.model.inventory import Inventory, Vm, VmSettings
    from vsphere_ml.core.model.placement import ResolvedSite
    from vsphere_ml.core.model.spec import ClusterSpec
    from vsphere_ml.core.report.export.hcl import Value

_ADAPTERS = {"vmxnet3", "e1000", "e1000e", "sriov", "vmxnet3vrdma"}
_EXTRA = ("pciPassthru.", "numa.", CLUSTER_KEY, NODE_KEY)
_HEAD = """\
# Made by `vsml export terraform`: the VMs of cluster {name} as they stood then, on
# {about}.
# `terraform apply` takes them into Terraform's state by the import blocks. Go on changing them with vsml, or with
# Terraform, not with both. Server and account come from VSPHERE_SERVER, VSPHERE_USER and VSPHERE_PASSWORD.

terraform {{
  required_version = ">= 1.5.0"
  required_providers {{
    vsphere = {{
      source = "vmware/vsphere"
    }}
  }}
}}

provider "vsphere" {{}}
"""
# Each would otherwise be changed to what this file does not or cannot say.
_IGNORED = (
    "annotation, clone, custom_attributes, disk, extra_config, network_interface, pci_device_id, tags, "
    "vapp, wait_for_guest_net_timeout"
)


def configuration(spec: ClusterSpec, inventory: Inventory) -> str:
    """Return the configuration; NotPossible as `resolve`. What it leaves out stands in it as comments."""
    resolved = resolve(spec, inventory)
    vms = existing_vms(spec, inventory)
    there = {vm.name for vm in vms}
    head = _HEAD.format(name=spec.name, about=hcl.comment(inventory.about)[2:]).splitlines()
    missing = [
        hcl.comment(f"{node.name} does not stand, and is left out.") for node in spec.nodes if node.name not in there
    ]
    blocks = (_vm(vm, vm.settings, resolved, inventory) for vm in vms if vm.settings is not None)
    rules = (_rule(rule.name) for rule in resolved.cluster.rules if rule.vms & {vm.ref for vm in vms})
    return "\n".join((*head, *missing, *rules, *chain.from_iterable(blocks))) + "\n"


def existing_vms(spec: ClusterSpec, inventory: Inventory) -> Sequence[Vm]:
    """Return the cluster's VMs that were read, in the order of its nodes."""
    ours = {vm.name: vm for vm in inventory.vms if is_marked(vm, spec.name) and vm.settings is not None}
    return [ours[node.name] for node in spec.nodes if node.name in ours]


def _rule(name: str) -> str:
    return hcl.comment(f"The DRS rule {name} is left out; `vsml provision` keeps it.")


def _vm(vm: Vm, settings: VmSettings, resolved: ResolvedSite, inventory: Inventory) -> Iterator[str]:
    name = hcl.identifier(vm.name)
    yield from (
        "",
        "import {",
        f"  to = vsphere_virtual_machine.{name}",
        f"  id = {hcl.value(_path(vm, inventory))}",
        "}",
        "",
    )
    yield from (hcl.comment(each) for each in _unsupported_settings(settings))
    host = next((host for host in inventory.hosts if host.ref == vm.host), None)
    on = host.name if host else "not known"
    yield hcl.comment(f"Pool of {resolved.cluster.name}, datastore {resolved.datastore.name}, host {on}.")
    yield hcl.comment(f"New nodes are cloned from {resolved.source.name}{_of_package(resolved)}.")
    inner = chain(
        _extra_config(settings), _networks(settings, inventory), _disk(settings, _policy(resolved)), _lifecycle()
    )
    yield from hcl.block(f'resource "vsphere_virtual_machine" "{name}"', _arguments(vm, settings, resolved), inner)


def _of_package(resolved: ResolvedSite) -> str:
    return f", deployed from {resolved.package.name}" if resolved.package is not None else ""


def _policy(resolved: ResolvedSite) -> dict[str, Value]:
    """Return the file's storage policy, which a VM's home and its disk have alike."""
    return {"storage_policy_id": resolved.storage_policy.id} if resolved.storage_policy is not None else {}


def _path(vm: Vm, inventory: Inventory) -> str:
    folder = next((folder.path for folder in inventory.folders if folder.ref == vm.folder), "")
    return "/".join(("", inventory.datacenter, "vm", *([folder] if folder else []), vm.name))


def _arguments(vm: Vm, settings: VmSettings, resolved: ResolvedSite) -> dict[str, Value]:
    made: dict[str, Value] = {
        "name": vm.name,
        "resource_pool_id": resolved.pool,
        "datastore_id": resolved.datastore.ref,
        **({"host_system_id": vm.host} if vm.host else {}),
        **({"folder": resolved.folder} if resolved.folder else {}),
        "hardware_version": vm.hardware_version,
        "firmware": settings.firmware,
        "efi_secure_boot_enabled": settings.secure_boot,
        "num_cpus": settings.cpus,
        **({"num_cores_per_socket": settings.cores_per_socket} if settings.cores_per_socket else {}),
        "cpu_reservation": settings.cpu_reservation_mhz,
        "memory": settings.memory.mib,
        "memory_reservation": settings.memory_reservation.mib,
        "memory_reservation_locked_to_max": settings.memory_locked,
        "cpu_hot_add_enabled": settings.cpu_hot_add,
        "memory_hot_add_enabled": settings.memory_hot_add,
        "latency_sensitivity": settings.latency,
        **_policy(resolved),
    }
    if functions := tuple(str(each.address) for each in _fixed_passthrough_devices(settings)):
        made["pci_device_id"] = functions
    return made


def _fixed_passthrough_devices(settings: VmSettings) -> Iterator[PciFunctionDevice]:
    """Yield the functions of fixed DirectPath that came with no group."""
    for device in settings.devices:
        if isinstance(device, PciFunctionDevice) and device.address and not device.allowed and device.group is None:
            yield device


def _unsupported_settings(settings: VmSettings) -> Iterator[str]:
    """Yield what the provider cannot say of a VM."""
    groups = {group.key: group.name for group in settings.groups}
    yield from (f"Not in the provider: vendor device group {name}" for name in groups.values())
    for device in settings.devices:
        match device:
            case VgpuDevice(group=None):
                yield f"Not in the provider: vGPU {device.profile}"
            case PciFunctionDevice(group=None) if device.allowed:
                ids = ", ".join(f"{vendor:04x}:{number:04x}" for vendor, number in device.allowed)
                yield f"Not in the provider: dynamic DirectPath to one of {ids} {device.label}".rstrip()
            case EthernetCard() if device.adapter not in _ADAPTERS:
                yield f"Not in the provider: adapter {device.adapter} {device.mac}"
            case _:
                pass


def _networks(settings: VmSettings, inventory: Inventory) -> Iterator[str]:
    cards = [each for each in settings.devices if isinstance(each, EthernetCard) and each.adapter in _ADAPTERS]
    names = {network.ref: network.name for network in inventory.networks}
    for card in sorted(cards, key=lambda each: each.adapter == "sriov"):
        if card.network is None or card.group is not None:
            yield f"  {hcl.comment(f'Left out: adapter {card.adapter} {card.mac}, on no network or of a device group')}"
            continue
        yield f"  {hcl.comment(f'{names.get(card.network, card.network)}, {card.mac}')}"
        values: dict[str, Value] = {"network_id": card.network, "adapter_type": card.adapter}
        if card.physical_function:
            values["physical_function"] = card.physical_function
        yield from hcl.block("network_interface", values, indent=2)


def _disk(settings: VmSettings, policy: dict[str, Value]) -> Iterator[str]:
    if settings.disk is None:
        yield f"  {hcl.comment('The size of its disk was not read; Terraform needs one, and ignores it here.')}"
    size = -(-(settings.disk or gib(1)) // gib(1))
    yield from hcl.block("disk", {"label": "Hard Disk 0", "size": size, **policy}, indent=2)


def _extra_config(settings: VmSettings) -> Iterator[str]:
    """Yield the settings of devices and NUMA; others are vCenter's own, or guests' user data with its secrets."""
    shown = {key: each for key, each in settings.extra_config.items() if key.startswith(_EXTRA)}
    if shown:
        yield from hcl.mapping("extra_config", shown, 2)


def _lifecycle() -> Iterator[str]:
    yield from ("  lifecycle {", "    prevent_destroy = true", f"    ignore_changes  = [{_IGNORED}]", "  }")
