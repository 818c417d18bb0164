"""A site as a page: who has how many GPUs, and a card a host in which each GPU and NIC stands beside its neighbours.

Hosts that are alike and that nobody uses are folded into one card.
"""

from __future__ import annotations

import html as markup
import re
from collections import Counter
from typing import TYPE_CHECKING

from vsphere_ml.cli.views.site import inventory as tables
from vsphere_ml.core.model.host_settings import SHARED_DIRECT
from vsphere_ml.core.model.inventory import NVLINK
from vsphere_ml.core.model.locality import bridges
from vsphere_ml.core.order import count
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from vsphere_ml.core.model.inventory import Gpu, Host, HostRef, Inventory, NicPort, NumaNode, PciAddress, Vm, VmRef

    Vms = Mapping[VmRef, Vm]

STYLE = """
:root { color-scheme: light dark; --ink: #1c2330; --soft: #5b6575; --paper: #ffffff; --card: #f6f8fb; --rule: #d4dae4;
  --free: #1b7f5c; --away: #b3261e; --chip: #ffffff; --c0: #1f5fbf; --c1: #c2571a; --c2: #9b3fa5; --c3: #a68a00;
  --c4: #0f8392; --c5: #7a4b2a; }
@media (prefers-color-scheme: dark) { :root { --ink: #e7ebf2; --soft: #a2adbd; --paper: #14181f; --card: #1b212b;
  --rule: #343d4c; --free: #63c9a2; --away: #f08b84; --chip: #14181f; --c0: #79aaf0; --c1: #f0a06a; --c2: #d693de;
  --c3: #e3cb5a; --c4: #5cc7d6; --c5: #c99d7c; } }
body { margin: 0; background: var(--paper); color: var(--ink); font: 15px/1.45 system-ui, sans-serif; }
main { max-width: 90rem; margin: 0 auto; padding: 1.5rem 1rem 3rem; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: .2rem 0; }
h2 { font-size: 1.02rem; margin: 0; overflow-wrap: anywhere; }
.soft { color: var(--soft); font-size: .85rem; margin: .1rem 0; overflow-wrap: anywhere; }
.legend { display: flex; flex-wrap: wrap; gap: .4rem 1.1rem; margin: .8rem 0 1.2rem; padding: 0; list-style: none; }
.legend li::before { content: ""; display: inline-block; width: .8rem; height: .8rem; border-radius: .2rem;
  background: var(--mark); margin-right: .4rem; }
.where { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 15rem), 1fr)); gap: .1rem 1rem;
  margin: .4rem 0 1.2rem; padding: 0; list-style: none; font-size: .9rem; } .where li { overflow-wrap: anywhere;
  border-left: 4px solid var(--mark, var(--rule)); padding-left: .5rem; } summary { cursor: pointer; font-weight: 600; }
.hosts { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 22rem), 1fr)); gap: 1rem; }
.host { background: var(--card); border: 1px solid var(--rule); border-radius: .5rem; padding: .8rem; min-width: 0; }
.numa { margin-top: .6rem; } .joined { border-left: 4px solid var(--rule); padding-left: .5rem; margin: .35rem 0; }
.chip { background: var(--chip); border: 1px solid var(--rule); border-left: 6px solid var(--mark);
  border-radius: .3rem; padding: .25rem .5rem; margin: .25rem 0; overflow-wrap: anywhere; }
.chip b { color: var(--mark); }
.free { --mark: var(--free); } .away { --mark: var(--away); } .c0 { --mark: var(--c0); } .c1 { --mark: var(--c1); }
.c2 { --mark: var(--c2); } .c3 { --mark: var(--c3); } .c4 { --mark: var(--c4); } .c5 { --mark: var(--c5); }
"""
FREE, NOT_USABLE = "free", "not usable"
MOST_OPEN = 64  # nodes that are listed without a click
HUES = 6  # classes c0 to c5; more owners begin anew
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]")


@dataclass(frozen=True, slots=True)
class _Chip:
    """A GPU or NIC on the page. `owners` are clusters, and VMs that are of none; empty when it is free."""

    name: str
    detail: str
    owners: tuple[str, ...]
    usable: bool = True


def _escape(text: str) -> str:
    """Return text that a page shows as it is."""
    return markup.escape(_CONTROLS.sub("�", text))


def html(inventory: Inventory) -> str:
    """Return the page. It runs nothing and fetches nothing."""
    title = _escape(f"GPUs of {inventory.datacenter}")
    head = (
        f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><title>{title}</title>'
    )
    body = "\n".join(_body(inventory))
    return (
        f'<!doctype html>\n<html lang="en"><head>{head}<style>{STYLE}</style></head>\n'
        f"<body><main>\n{body}\n</main></body></html>\n"
    )


def _body(inventory: Inventory) -> Iterator[str]:
    hosts = [host for host in inventory.hosts if host.gpus or host.nics or host.passthrough_gpus]
    vms = {vm.ref: vm for vm in inventory.vms}
    chips = {host.ref: _chips(host, vms) for host in hosts}
    use = Counter(owner for host in hosts for chip in _gpus(host, chips[host.ref]) for owner in _owners_or_state(chip))
    owners = {owner for there in chips.values() for chip in there.values() for owner in chip.owners}
    hues = {owner: f"c{at % HUES}" for at, owner in enumerate(sorted(owners))}
    yield f"<h1>{_escape(_headline(use, sum(len(_gpus(host, chips[host.ref])) for host in hosts)))}</h1>"
    yield f'<p class="soft">{_escape(inventory.about)}, data centre {_escape(inventory.datacenter)}</p>'
    yield f'<ul class="legend">{"".join(_legend(hues, use))}</ul>'
    yield from _where(inventory, hues)
    yield '<div class="hosts">'
    for alike in _groups(hosts, chips):
        yield _card(alike, chips[alike[0].ref], hues)
    yield "</div>"


def _headline(use: Mapping[str, int], gpus: int) -> str:
    return f"{use.get(FREE, 0)} of {count(gpus, 'GPU')} free" if gpus else "no GPUs"


def _legend(hues: Mapping[str, str], use: Mapping[str, int]) -> Iterator[str]:
    """Yield each owner with its colour and how many GPUs it has."""
    rows = [*((owner, owner, hue) for owner, hue in hues.items()), (FREE, FREE, "free")]
    rows.append((NOT_USABLE, "not usable for VMs now", "away"))
    yield from (f'<li class="{hue}">{_escape(text)}: <b>{use.get(key, 0)}</b></li>' for key, text, hue in rows)


def _where(inventory: Inventory, hues: Mapping[str, str]) -> Iterator[str]:
    """Yield on which host each VM of a cluster is, by name; folded where there are many."""
    names = {host.ref: host.name for host in inventory.hosts}
    vms = sorted((vm for vm in inventory.vms if vm.cluster_mark), key=lambda vm: vm.name)
    rows = "".join(
        f'<li class="{hues.get(vm.cluster_mark or "", "")}"><b>{_escape(vm.name)}</b> '
        f"{_escape(names.get(vm.host, 'host unknown') if vm.host else 'on no host')}</li>"
        for vm in vms
    )
    if rows:
        opened = " open" if len(vms) <= MOST_OPEN else ""
        yield f"<details{opened}><summary>Where {count(len(vms), 'node')} are</summary>"
        yield f'<ul class="where">{rows}</ul></details>'


def _owners_or_state(chip: _Chip) -> tuple[str, ...]:
    return chip.owners or (FREE if chip.usable else NOT_USABLE,)


def _gpus(host: Host, chips: Mapping[PciAddress, _Chip]) -> list[_Chip]:
    nics = {nic.address for nic in host.nics}
    return [chip for address, chip in chips.items() if address not in nics]


def _chips(host: Host, vms: Vms) -> dict[PciAddress, _Chip]:
    """Return each GPU and NIC of a host by its address."""
    chips = {each.address: _gpu(each, vms) for each in host.gpus}
    for gpu in tables.passthrough_gpus(host):
        holders = [gpu.held_by] if gpu.held_by else []
        user = f"{_vm_names(holders, vms)}: DirectPath" if holders else "DirectPath"
        chips[gpu.address] = _Chip(gpu.name, user, _owners(holders, vms))
    chips |= {nic.address: _nic(nic, vms) for nic in host.nics}
    return dict(sorted(chips.items()))


def _gpu(gpu: Gpu, vms: Vms) -> _Chip:
    users = ", ".join(f"{use.vm_name}: {use.count} × {use.profile or 'profile unknown'}" for use in gpu.used_by)
    owners = _owners([use.vm for use in gpu.used_by], vms)
    return _Chip(gpu.name, users or gpu.graphics_type, owners, usable=gpu.graphics_type == SHARED_DIRECT)


def _nic(nic: NicPort, vms: Vms) -> _Chip:
    holders = [nic.held_by] if nic.held_by else [*nic.vf_holders]
    return _Chip(nic.name, _vm_names(holders, vms) or tables.functions(nic), _owners(holders, vms))


def _vm_names(refs: Iterable[VmRef], vms: Vms) -> str:
    return ", ".join(vms[ref].name if ref in vms else ref for ref in refs)


def _owners(refs: Iterable[VmRef], vms: Vms) -> tuple[str, ...]:
    """Return the clusters of some VMs, and the names of those that are of none."""
    found = ((ref, vms.get(ref)) for ref in refs)
    return tuple(sorted({(vm.cluster_mark or vm.name) if vm else ref for ref, vm in found}))


def _groups(hosts: Sequence[Host], chips: Mapping[HostRef, Mapping[PciAddress, _Chip]]) -> Iterable[list[Host]]:
    """Return hosts that are alike and unused together, every other one alone."""
    groups: dict[object, list[Host]] = {}
    for host in hosts:
        used = any(chip.owners for chip in chips[host.ref].values())
        shape = tuple((at, chip.name, chip.detail, chip.usable) for at, chip in chips[host.ref].items())
        alike = (shape, host.version, host.cores, host.memory, tables.state(host))
        groups.setdefault(host.ref if used else alike, []).append(host)
    return groups.values()


def _card(alike: Sequence[Host], chips: Mapping[PciAddress, _Chip], hues: Mapping[str, str]) -> str:
    host = alike[0]
    more = f" and {count(len(alike) - 1, 'host')} like it" if len(alike) > 1 else ""
    names = f'<p class="soft">{_escape(", ".join(each.name for each in alike[1:]))}</p>' if more else ""
    about = f"ESXi {host.version}, {host.cores} cores, {host.memory}, {tables.state(host)}"
    linked = sum(group.name.endswith(NVLINK) for group in host.groups)
    nvlink = f'<p class="soft">NVLink joins GPUs here: {count(linked, "device group")}</p>' if linked else ""
    nodes = "".join(_numa(node, host, chips, hues) for node in host.numa)
    lost = {at: chip for at, chip in chips.items() if host.numa_of(at) is None}
    rest = f'<div class="numa"><p class="soft">NUMA node unknown</p>{_boxes(host, lost, hues)}</div>' if lost else ""
    return (
        f'<section class="host"><h2>{_escape(host.name)}{more}</h2>{names}<p class="soft">{_escape(about)}</p>{nvlink}'
        f"{nodes}{rest}</section>"
    )


def _numa(node: NumaNode, host: Host, chips: Mapping[PciAddress, _Chip], hues: Mapping[str, str]) -> str:
    there = {at: chip for at, chip in chips.items() if at in node.pci}
    if not there:
        return ""
    title = f"NUMA node {node.id}: {node.cores} cores, {node.memory}"
    return f'<div class="numa"><p class="soft">{_escape(title)}</p>{_boxes(host, there, hues)}</div>'


def _boxes(host: Host, chips: Mapping[PciAddress, _Chip], hues: Mapping[str, str]) -> str:
    """Return devices below one bridge joined by a line."""
    below: dict[PciAddress | None, dict[PciAddress, _Chip]] = {}
    for at, chip in chips.items():
        below.setdefault(next(iter(bridges(host, at)), None), {})[at] = chip
    return "".join(_draw_bridge(bridge, there, hues) for bridge, there in below.items())


def _draw_bridge(bridge: PciAddress | None, chips: Mapping[PciAddress, _Chip], hues: Mapping[str, str]) -> str:
    drawn = "".join(_chip(at, chip, hues) for at, chip in chips.items())
    return drawn if bridge is None else f'<div class="joined" title="below {_escape(bridge)}">{drawn}</div>'


def _chip(address: PciAddress, chip: _Chip, hues: Mapping[str, str]) -> str:
    hue = hues[chip.owners[0]] if chip.owners else "free" if chip.usable else "away"
    label = ", ".join(_owners_or_state(chip))
    return (
        f'<div class="chip {hue}" title="{_escape(address)}"><b>{_escape(label)}</b> {_escape(chip.name)}'
        f'<p class="soft">{_escape(address)} · {_escape(chip.detail)}</p></div>'
    )
