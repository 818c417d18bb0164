"""Sites and clusters of tests/cases/placement: hosts of A100 in a few words, and what is known of the answer.

A host has on each NUMA node one PCIe switch, with the GPUs and ConnectX-6 Dx that `gpus` and `nics` count there.
`modes` and `held` go by GPU in the order of addresses; one mode stands for all. `away` are functions of a NIC behind a
root port of its own on NUMA node 1.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.fakes.pictures import (
    A100_GROUP,
    A100_PROFILES,
    a100,
    bridge,
    connectx6,
    gpu,
    port,
    quad_8u3,
)
from tests.fakes.requirements import cluster, node
from vsphere_ml.core.model.device_kinds import GpuKind, NicKind
from vsphere_ml.core.model.inventory import DeviceGroup, GpuUse, Host, HostRef, Inventory, NumaNode, VgpuProfile, VmRef
from vsphere_ml.core.model.spec import ClusterSpec, GpuRequest, NicRequest, NodeSpec, Spread
from vsphere_ml.core.units import gib

CASES = Path(__file__).parents[2] / "cases" / "placement"
PAIR = DeviceGroup(
    name="Nvidia:2@grid_a100-40c%NVLink", components=(A100_GROUP.components[0], A100_GROUP.components[0])
)
GROUPS = {"nic": A100_GROUP, "pair": PAIR}
MIG_PROFILES = tuple(VgpuProfile(name=f"grid_a100-{each}") for each in ("7-40c", "3-20c", "2-10c", "1-5c"))


@dataclass(frozen=True)
class Case:
    """A hard site. `strands`: a greedy walk fails though a placement exists; `brute`: small enough to try all."""

    name: str
    why: str
    fits: bool
    strands: bool
    brute: bool
    says: tuple[str, ...]
    spec: ClusterSpec
    site: Inventory


def cases() -> list[Case]:
    return [_case(path) for path in sorted(CASES.glob("*.toml"))]


def _case(path: Path) -> Case:
    read = tomllib.loads(path.read_text(encoding="utf-8"))
    hosts: list[Host] = []
    for row in read["hosts"]:
        first = len(hosts) + 1
        hosts.extend(_host(first + more, **row) for more in range(row.pop("count", 1)))
    wanted = tuple(each for row in read["nodes"] for each in _nodes(**row))
    return Case(
        name=path.stem,
        why=read["why"],
        fits=read["fits"],
        strands=read.get("strands", False),
        brute=read.get("brute", True),
        says=tuple(read.get("says", ())),
        spec=cluster(wanted, spread=Spread(read.get("spread", "spread"))),
        site=replace(quad_8u3(hosts=1, taken=False), hosts=tuple(hosts)),
    )


def _host(number: int, **row: Any) -> Host:
    gpus, nics = row.get("gpus", [2, 2]), row.get("nics", [1, 1])
    devices, homes = [], []
    for numa, (bus, gpu_count, nic_count) in enumerate(zip(("3", "b"), gpus, nics, strict=True)):
        under = f"0000:{bus}1:00.0"
        here = [bridge(f"0000:{bus}0:00.0"), bridge(under, f"0000:{bus}0:00.0")]
        here += [a100(f"0000:{bus}{2 + at}:00.0", under) for at in range(gpu_count)]
        here += [connectx6(f"0000:{bus}{10 + at:x}:00.0", under) for at in range(nic_count)]
        if numa and "away" in row:
            here += [bridge("0000:d0:00.0"), connectx6("0000:d1:00.0", "0000:d0:00.0")]
        memory = row.get("memory", 1024) // 2
        homes.append(NumaNode(id=numa, cores=row.get("cores", 28), memory=gib(memory), pci=_addresses(here)))
        devices += here
    cards = [each.address for each in devices if each.device == 0x20F1]
    ports = [each.address for each in devices if each.device == 0x101D]
    modes = row.get("modes", ["sameSize"])
    functions = {"0000:d1:00.0": row.get("away", 0)}
    return replace(
        quad_8u3(hosts=1, taken=False).hosts[0],
        ref=HostRef(f"host-{number}"),
        name=f"esx-{number:02}.lab.test",
        memory=gib(row.get("memory", 1024)),
        memory_reserved=gib(row.get("reserved", 0)),
        numa=tuple(homes),
        pci={each.address: each for each in devices},
        gpus=tuple(
            replace(gpu(address, mode=modes[at % len(modes)]), used_by=_users(row, at))
            for at, address in enumerate(cards)
        ),
        nics=tuple(port(at, f"vmnic{n}", vfs=functions.get(at, row.get("vfs", 8))) for n, at in enumerate(ports)),
        profiles=(*A100_PROFILES, *MIG_PROFILES),
        groups=tuple(GROUPS[each] for each in row.get("groups", ())),
    )


def _addresses(devices: list[Any]) -> frozenset[Any]:
    return frozenset(each.address for each in devices)


def _users(row: dict[str, Any], at: int) -> tuple[GpuUse, ...]:
    held = row.get("held", [])
    profiles = held[at] if at < len(held) else []
    return tuple(
        GpuUse(vm=VmRef(f"vm-{90 + at}{number}"), vm_name=f"other-{at}-{number}", profile=f"grid_{each.lower()}")
        for number, each in enumerate(profiles)
    )


def _nodes(name: str, count: int = 1, **row: Any) -> tuple[NodeSpec, ...]:
    kind = GpuKind(row.get("kind", "vgpu"))
    one = node(
        name,
        cpus=row.get("cpus", 4),
        memory=gib(row.get("memory", 16)),
        gpu=GpuRequest(kind=kind, profile=row.get("profile", "A100-40C"), count=row.get("gpus", 1)),
        nic=NicRequest(kind=NicKind(row.get("nic", "none")), port_group="roce"),
        host=row.get("host"),
    )
    return tuple(replace(one, name=f"{name}-{at}") for at in range(1, count + 1)) if count > 1 else (one,)
