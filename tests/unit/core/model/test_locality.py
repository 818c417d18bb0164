from __future__ import annotations

from dataclasses import replace

import pytest

from tests.fakes.pictures import bridge, r750xa, two_a100
from vsphere_ml.core.catalog.adapters import is_model
from vsphere_ml.core.model.inventory import Host, PciAddress
from vsphere_ml.core.model.locality import bridges, locality_between
from vsphere_ml.core.model.placement import Locality

GPU, NIC, FAR_NIC = PciAddress("0000:3b:00.0"), PciAddress("0000:3d:00.0"), PciAddress("0000:b5:00.0")


def test_functions_below_one_switch_are_on_it() -> None:
    assert locality_between(r750xa(1), GPU, NIC) is Locality.SAME_SWITCH


def test_functions_below_one_root_port_share_the_root_complex() -> None:
    assert locality_between(two_a100(), GPU, PciAddress("0000:3c:00.0")) is Locality.SAME_ROOT


def test_root_ports_on_one_bus_are_of_one_root_complex() -> None:
    host = r750xa(1)
    ports = [bridge("0000:36:02.0"), replace(host.pci[NIC], parent=PciAddress("0000:36:02.0"))]
    apart = replace(host, pci={**host.pci, **{each.address: each for each in ports}})
    assert locality_between(apart, GPU, NIC) is Locality.SAME_ROOT


def test_functions_of_two_sockets_are_across_numa_nodes() -> None:
    assert locality_between(r750xa(1), GPU, FAR_NIC) is Locality.CROSS_NUMA


def bare(host: Host) -> Host:
    return replace(host, pci={})


def test_without_bridges_the_numa_node_is_what_is_known() -> None:
    assert locality_between(bare(r750xa(1)), GPU, NIC) is Locality.SAME_NUMA


def test_a_host_that_says_nothing_leaves_it_unknown() -> None:
    assert locality_between(replace(bare(r750xa(1)), numa=()), GPU, NIC) is Locality.UNKNOWN


def test_bridges_that_point_at_each_other_end_the_walk() -> None:
    host = r750xa(1)
    loop = {PciAddress("0000:36:00.0"): bridge("0000:36:00.0", "0000:37:00.0")}
    assert len(bridges(replace(host, pci={**host.pci, **loop}), GPU)) == 32


@pytest.mark.parametrize(
    ("printed", "model", "same"),
    [
        ("MT2892 Family [ConnectX-6 Dx]", "ConnectX-6 Dx", True),
        ("NVIDIA-ConnectX-6-Dx-NIC", "ConnectX-6 Dx", True),
        ("Nvidia:1@grid_a100-40c:1@NVIDIA-ConnectX-6-Dx-NIC%SameSwitch", "connectx-6 dx", True),
        ("MT2892 Family [ConnectX-6 Dx]", "ConnectX-6", False),
        ("MT28908 Family [ConnectX-6]", "ConnectX-6", True),
        ("MT2910 Family [ConnectX-7]", "ConnectX-6 Dx", False),
        ("anything", "", False),
    ],
)
def test_a_model_is_found_in_what_is_printed(printed: str, model: str, same: bool) -> None:  # noqa: FBT001
    assert is_model(printed, model) is same
