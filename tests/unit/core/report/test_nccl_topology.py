"""The topology file keeps what a VM flattens: which functions share a switch, and which a NUMA node."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from tests.fakes.pictures import r750xa
from vsphere_ml.core.model.locality import locality_between
from vsphere_ml.core.model.placement import Locality
from vsphere_ml.core.report.nccl_topology import fill_bus_ids, shape, xml

if TYPE_CHECKING:
    from tests.golden import Golden
    from vsphere_ml.core.model.inventory import PciAddress

HOST = r750xa(1)
GPUS = sorted(gpu.address for gpu in HOST.gpus)
NICS = [nic.address for nic in HOST.nics]


def beside(locality: Locality) -> tuple[PciAddress, PciAddress]:
    """Return a GPU and a NIC of the host that lie so."""
    return next((gpu, nic) for gpu in GPUS for nic in NICS if locality_between(HOST, gpu, nic) is locality)


def test_a_pair_on_one_switch_shares_a_bridge() -> None:
    gpu, nic = beside(Locality.SAME_SWITCH)
    found = shape(HOST, [gpu], [nic])
    assert found.certain
    assert fill_bus_ids(xml(found), ["00000000:03:00.0"], ["0000:0B:00.0"]) == (
        '<system version="1">\n'
        '  <cpu numaid="0">\n'
        '    <pci busid="ffff:ff:01.0" class="0x060400" link_speed="" link_width="">\n'
        '      <pci busid="0000:03:00.0" class="0x030200"/>\n'
        '      <pci busid="0000:0b:00.0" class="0x020000"/>\n'
        "    </pci>\n"
        "  </cpu>\n"
        "</system>\n"
    )


def test_a_pair_across_sockets_shares_no_bridge() -> None:
    gpu, nic = beside(Locality.CROSS_NUMA)
    system = ET.fromstring(xml(shape(HOST, [gpu], [nic])))
    assert [cpu.attrib["numaid"] for cpu in system] == ["0", "1"]
    assert [each.attrib["busid"] for each in system.iter("pci")] == ["GPU0", "NIC0"]
    assert not system.findall("cpu/pci/pci")


def test_gpus_that_do_not_sit_alike_cannot_be_told_apart_in_the_guest() -> None:
    _, nic = beside(Locality.SAME_SWITCH)
    assert not shape(HOST, GPUS, [nic]).certain
    assert shape(HOST, GPUS[:1], []).certain


def test_a_bridge_of_one_function_is_left_out() -> None:
    gpu, _ = beside(Locality.SAME_SWITCH)
    assert [each.attrib["busid"] for each in ET.fromstring(xml(shape(HOST, [gpu], []))).iter("pci")] == ["GPU0"]


def test_every_function_is_there_once() -> None:
    system = ET.fromstring(xml(shape(HOST, GPUS, NICS)))
    ids = [each.attrib["busid"] for each in system.iter("pci")]
    assert len(ids) == len(set(ids))
    assert {f"GPU{at}" for at in range(len(GPUS))} | {f"NIC{at}" for at in range(len(NICS))} <= set(ids)


@pytest.mark.parametrize(
    ("gpus", "nics"),
    [
        ([], ["0000:0b:00.0"]),
        (["0000:03:00.0", "0000:04:00.0"], ["0000:0b:00.0"]),
        (["0000:03:00.0"], []),
        (["0000:03:00.0"], ["0000:0b:00.0", "0000:0c:00.0"]),
        (['03"/><evil'], ["0000:0b:00.0"]),
    ],
)
def test_a_guest_that_differs_from_its_host_gets_no_file(gpus: list[str], nics: list[str], golden: Golden) -> None:
    gpu, fast = beside(Locality.SAME_SWITCH)
    text = xml(shape(HOST, [gpu], [fast]))
    with pytest.raises(ValueError) as refused:  # noqa: PT011 - its words are in the golden file
        fill_bus_ids(text, gpus, nics)
    golden(str(refused.value))


def test_each_nic_gets_the_bus_id_of_its_own_port() -> None:
    text = fill_bus_ids(xml(shape(HOST, GPUS[:1], NICS[::-1])), ["0000:03:00.0"], ["0000:0b:00.0", "0000:0c:00.0"])
    system = ET.fromstring(text)
    at = [HOST.numa_of(nic) for nic in sorted(NICS)]
    order = list(dict.fromkeys(HOST.numa_of(each) for each in (GPUS[0], *sorted(NICS))))
    for busid, numa in zip(("0000:0b:00.0", "0000:0c:00.0"), at, strict=True):
        (cpu,) = [each for each in system if any(pci.attrib["busid"] == busid for pci in each.iter("pci"))]
        assert cpu.attrib["numaid"] == str(order.index(numa))
