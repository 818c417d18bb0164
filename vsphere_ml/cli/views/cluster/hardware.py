"""What VMs will be before their first power-on: one block for all that are alike, every key of each as data."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from vsphere_ml.cli.views.cluster import changes
from vsphere_ml.cli.views.layout.text import line
from vsphere_ml.core.model.marks import CLUSTER_KEY, NODE_KEY
from vsphere_ml.core.model.owned_settings import RECORD_KEY
from vsphere_ml.core.placement.existing import AFFINITY
from vsphere_ml.core.placement.vm_config import LARGE_MMIO, MMIO_SIZE, PEER_TO_PEER
from vsphere_ml.core.plan.changes import CloneVm, SetSettings
from vsphere_ml.core.plan.describe import device_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rich.text import Text

    from vsphere_ml.core.model.placement import Target
    from vsphere_ml.core.plan.plan import Plan
    from vsphere_ml.core.units import Bytes

_WORDED = {LARGE_MMIO, MMIO_SIZE, *PEER_TO_PEER, AFFINITY, CLUSTER_KEY, NODE_KEY, RECORD_KEY}


class HardwareData(TypedDict):
    """A VM that is made or set up, with all that it will be; sizes in bytes."""

    node: str
    cpus: int
    cores_per_socket: int
    cpu_reservation_mhz: int
    cpu_hot_add: bool
    memory: Bytes
    memory_reservation: Bytes
    memory_reservation_locked: bool
    memory_hot_add: bool
    disk: Bytes | None
    firmware: str
    secure_boot: bool
    hardware_version: int
    latency: str
    extra_config: Mapping[str, str]
    devices: list[str]


def blocks(plan: Plan, *, every_key: bool = False) -> Iterator[Text]:
    """Yield the VMs that get the same, and under them what they get; `every_key` adds all keys as vCenter has them."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for vm, target in _targets(plan):
        alike.setdefault(tuple(_lines(target, every_key=every_key)), []).append(vm)
    for lines, vms in alike.items():
        yield line("   ", changes.list_names(vms))
        yield from (line("      ", each) for each in lines)


def data(plan: Plan) -> list[HardwareData]:
    """Return each VM that is made or set up, with everything it will be."""
    return [_fields(vm, target) for vm, target in _targets(plan)]


def _targets(plan: Plan) -> Iterator[tuple[str, Target]]:
    return ((each.vm, each.target) for each in plan.changes if isinstance(each, CloneVm | SetSettings))


def _lines(target: Target, *, every_key: bool) -> Iterator[str]:
    disk = f"disk of at least {target.disk}" if target.disk is not None else "disk as the template's"
    yield f"{target.cpus} CPUs, {target.memory} memory all reserved and locked, {disk}"
    boot = "with" if target.secure_boot else "without"
    latency = f"latency sensitivity {target.latency}"
    if target.cpu_reservation_mhz:
        latency += f" with {target.cpu_reservation_mhz} MHz reserved"
    yield f"{target.firmware.upper()} {boot} secure boot, hardware version {target.hardware_version}, {latency}"
    yield f"{_passthrough(target)}, CPU and memory hot-add off"
    others = sorted((key, value) for key, value in target.extra_config.items() if key not in _WORDED)
    if others and not every_key:
        yield ", ".join(_setting(key, value) for key, value in others)
    if every_key:
        yield from (_setting(key, value) for key, value in sorted(target.extra_config.items()) if key != NODE_KEY)
        yield f"{NODE_KEY} = the node's name"


def _passthrough(target: Target) -> str:
    keys = target.extra_config
    on = all(keys.get(key, "").upper() == "TRUE" for key in PEER_TO_PEER)
    bound = f"NUMA affinity {keys[AFFINITY]}" if keys.get(AFFINITY) else "no NUMA affinity"
    space = f"MMIO space of {keys[MMIO_SIZE]} GB" if keys.get(MMIO_SIZE) else "no MMIO space"
    return f"{space}, peer-to-peer {'on' if on else 'off'}, {bound}"


def _setting(key: str, value: str) -> str:
    return f"{key} = {value}" if value else f"{key} taken away"


def _fields(vm: str, target: Target) -> HardwareData:
    return {
        "node": vm,
        "cpus": target.cpus,
        "cores_per_socket": target.cores_per_socket,
        "cpu_reservation_mhz": target.cpu_reservation_mhz,
        "cpu_hot_add": False,
        "memory": target.memory,
        "memory_reservation": target.memory,
        "memory_reservation_locked": True,
        "memory_hot_add": False,
        "disk": target.disk,
        "firmware": target.firmware,
        "secure_boot": target.secure_boot,
        "hardware_version": target.hardware_version,
        "latency": target.latency,
        "extra_config": target.extra_config,
        "devices": [device_name(each) for each in target.devices],
    }
