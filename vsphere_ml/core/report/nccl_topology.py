"""A topology file for NCCL: a VM's PCI functions in the tree of its host, which the VM itself does not see.

By NCCL's source of June 2026 (src/graph/xml.cc and topo.cc): `system` of version 1 holds `cpu` elements by `numaid`,
which hold `pci` elements by `busid` and `class`. What is left out is read in the guest: links' speeds by NVML and
sysfs, NVLinks, network devices. A bridge that the guest does not have takes any bus id that is free there. vSphere does
not say its links' speeds; NCCL takes an empty one for PCIe 3.0 x16.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from vsphere_ml.core.model.locality import bridges
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vsphere_ml.core.model.inventory import Host, PciAddress

GPU, NIC = "0x030200", "0x020000"  # a 3D controller, an Ethernet controller
_BRIDGE = "0x060400"
_BELOW_ROOT_PORT = 1
_LABEL = re.compile(r'busid="((?:GPU|NIC)\d+)"')
_BUS_ID = re.compile(r"([0-9a-f]{4,8}):([0-9a-f]{2}:[0-9a-f]{2}\.[0-7])")


@dataclass(frozen=True, slots=True, kw_only=True)
class _TopologyPlace:
    """Where one function of a VM sits on its host. `label` stands for its bus id in the guest."""

    label: str
    pci_class: str
    numa: int | None
    switches: tuple[PciAddress, ...]  # bridges below the root port, outermost first


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyShape:
    """A VM's functions on their host, GPUs first and each kind by address."""

    places: tuple[_TopologyPlace, ...]

    @property
    def certain(self) -> bool:
        """Whether GPUs sit alike, so that it does not matter which is which in the guest."""
        shared = _shared_bridges(self.places)
        return len({(each.numa, _innermost(each, shared)) for each in self.places if each.pci_class == GPU}) <= 1


def shape(host: Host, gpus: Sequence[PciAddress], nics: Sequence[PciAddress]) -> TopologyShape:
    """Return how these functions of a host lie to each other."""
    labelled = [(f"GPU{at}", GPU, address) for at, address in enumerate(sorted(gpus))]
    labelled += [(f"NIC{at}", NIC, address) for at, address in enumerate(sorted(nics))]
    return TopologyShape(places=tuple(_place(host, *each) for each in labelled))


def xml(shape: TopologyShape) -> str:
    """Return the file with labels in place of bus ids, which only the guest knows."""
    system = ET.Element("system", version="1")
    shared = _shared_bridges(shape.places)
    bridged: dict[PciAddress, ET.Element] = {}
    for number, numa in enumerate(_numas(shape)):
        cpu = ET.SubElement(system, "cpu", numaid=str(number))
        for place in (each for each in shape.places if each.numa == numa):
            parent = cpu
            for switch in (each for each in place.switches if each in shared):
                parent = bridged.get(switch) or bridged.setdefault(switch, _bridge(parent, len(bridged)))
            ET.SubElement(parent, "pci", {"busid": place.label, "class": place.pci_class})
    ET.indent(system)
    # NCCL's reader takes the blank before `/>` for an attribute without a name.
    return ET.tostring(system, encoding="unicode").replace(" />", "/>") + "\n"


def fill_bus_ids(text: str, gpus: Sequence[str], nics: Sequence[str]) -> str:
    """Return a file with a guest's bus ids put in: GPUs by order, NICs as they come, by their ports' addresses.

    ValueError says how many GPUs or NICs the guest has instead. NCCL compares bus ids as texts: lower case, the domain
    in four digits. nvidia-smi prints capitals and eight.
    """
    labels = _LABEL.findall(text)
    given = {f"GPU{at}": each for at, each in enumerate(sorted(map(_bus_id, gpus)))}
    for kind, there in (("GPU", len(given)), ("NIC", len(nics))):
        value = sum(label.startswith(kind) for label in labels)
        if value != there:
            raise ValueError(f"{_count_devices(there, kind)} there, and its host tells of {value}")
    given |= {f"NIC{at}": _bus_id(each) for at, each in enumerate(nics)}
    return _LABEL.sub(lambda found: f'busid="{given[found[1]]}"', text)


def _count_devices(number: int, kind: str) -> str:
    return f"1 {kind} is" if number == 1 else f"{number} {kind}s are"


def _bus_id(text: str) -> str:
    """Return a bus id as NCCL writes it; ValueError for what is none."""
    match = _BUS_ID.fullmatch(text.strip().lower())
    if match is None:
        raise ValueError("what the guest says is no PCI bus id")
    return f"{match[1][-4:]}:{match[2]}"


def _place(host: Host, label: str, pci_class: str, address: PciAddress) -> _TopologyPlace:
    above = tuple(reversed(bridges(host, address)))
    return _TopologyPlace(
        label=label, pci_class=pci_class, numa=host.numa_of(address), switches=above[_BELOW_ROOT_PORT:]
    )


def _shared_bridges(places: Sequence[_TopologyPlace]) -> frozenset[PciAddress]:
    """Return the bridges that bring functions together: the inmost of those with the same functions below."""
    below: dict[PciAddress, frozenset[str]] = {}
    for place in places:
        for switch in place.switches:
            below[switch] = below.get(switch, frozenset()) | {place.label}
    innermost = {labels: switch for switch, labels in below.items() if len(labels) > 1}
    return frozenset(innermost.values())


def _innermost(place: _TopologyPlace, shared: frozenset[PciAddress]) -> PciAddress | None:
    return next((each for each in reversed(place.switches) if each in shared), None)


def _numas(shape: TopologyShape) -> list[int | None]:
    """Return the NUMA nodes in the order of the functions; the guest counts its own from 0."""
    return list(dict.fromkeys(each.numa for each in shape.places))


def _bridge(parent: ET.Element, number: int) -> ET.Element:
    attributes = {"busid": f"ffff:ff:{number + 1:02x}.0", "class": _BRIDGE, "link_speed": "", "link_width": ""}
    return ET.SubElement(parent, "pci", attributes)
