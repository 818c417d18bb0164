"""vsml's readers read what real systems printed, as far as people made it public."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.fakes.transcripts import lay_out, list_transcripts
from vsphere_ml.core.catalog import catalogue, profiles
from vsphere_ml.core.diagnostics import Severity
from vsphere_ml.core.model.guest import GuestFacts, Peer
from vsphere_ml.core.model.inventory import NVLINK, ComponentKind, DeviceGroup, GroupComponent, PciAddress
from vsphere_ml.core.tools import mft, nvidia_smi
from vsphere_ml.guest.facts import judge
from vsphere_ml.guest.steps.gpu import licence
from vsphere_ml.guest.steps.network import rdma
from vsphere_ml.vsphere.esxi import esxcli
from vsphere_ml.vsphere.inventory import vibs

if TYPE_CHECKING:
    from tests.fakes.transcripts import Described

FACTS = GuestFacts(
    name="node-01", cluster="train", peers=(Peer(name="node-01", address="10.0.0.1"),), gpus=2, profile=""
)


def parametrize(tool: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("described", list_transcripts(tool), ids=lambda each: each["source"].split("//")[1])


@parametrize("mst")
def test_the_ports_of_mst_status(described: Described) -> None:
    listed = mft.devices(lay_out(described).out)
    for address, name in described["reads"].items():
        found = mft.device_at(listed, PciAddress(address), None)
        assert (found.name if found else "") == name


@parametrize("mlxconfig")
def test_the_settings_of_mlxconfig(described: Described) -> None:
    printed = lay_out(described)
    for name, wanted in described["reads"].items():
        found = mft.number(printed.out, name)
        assert found == (mft.FirmwareSetting(wanted[0], *wanted[1:] or [None]) if wanted else None)


@parametrize("licence")
def test_the_licence_of_nvidia_smi(described: Described) -> None:
    assert licence.is_licensed(lay_out(described)) is described["reads"]["licensed"]


@parametrize("ibv_devinfo")
def test_the_ports_of_ibv_devinfo(described: Described) -> None:
    unopened = "Failed to open device\n" * described.get("unopened", 0)
    printed = lay_out({**described, "error": unopened, "status": 1 if unopened else 0})
    verdict, _ = judge.rdma_device(printed, FACTS, mtu=described["mtu"])
    assert (verdict is Severity.OK) is described["reads"]["right"]


@parametrize("ats")
def test_the_ats_lines_of_lspci(described: Described) -> None:
    verdict, _ = judge.ats(lay_out(described), FACTS)
    assert (verdict is Severity.OK) is described["reads"]["right"]


@parametrize("show_gids")
def test_the_gids_of_show_gids(described: Described) -> None:
    best, reads = rdma.best(lay_out(described), FACTS), described["reads"]
    seen = () if best is None else (best.device, best.index, best.interface)
    assert seen == tuple(reads.values())


@parametrize("topology")
def test_the_matrix_of_nvidia_smi(described: Described) -> None:
    printed = lay_out(described)
    assert nvidia_smi.gpu_to_nic(printed.out) == described["reads"]["gpu_to_nic"]
    verdict, _ = judge.nvlink(printed, FACTS)
    assert (verdict is Severity.OK) is described["reads"]["nvlink"]


@parametrize("lspci")
def test_the_whole_ports_of_lspci(described: Described) -> None:
    assert list(mft.guest_ports(lay_out(described).out)) == described["reads"]["ports"]


@parametrize("config_target")
def test_the_devices_of_a_config_target(described: Described) -> None:
    for name, size, sharing in described["profiles"]:
        read = profiles.parse(name)
        assert (read.framebuffer_gib, read.mig_slices is not None) == (size, sharing == "mig")
        assert (catalogue.find(read) is not None) is described["reads"]["known"]
    for name, kinds in described["groups"]:
        components = tuple(GroupComponent(kind=ComponentKind(each), device_name="") for each in kinds)
        group = DeviceGroup(name=name, components=components)
        assert group.name.endswith(NVLINK) is described["reads"]["nvlink"]
        assert not group.has_function


@parametrize("esxcli")
def test_the_rows_that_esxcli_answers_over_the_api(described: Described) -> None:
    assert esxcli.rows(lay_out(described).out) == described["reads"]["rows"]


@parametrize("vib")
def test_the_vgpu_managers_among_packages(described: Described) -> None:
    found = [version for name, of in described["rows"] if (version := vibs.version_of(name, of))]
    assert found == described["reads"]["managers"]


def test_a_guest_with_one_unlicensed_gpu_is_unlicensed() -> None:
    printed = lay_out({"tool": "licence", "states": ["Licensed (Expiry: N/A)", "Unlicensed (Restricted)"]})
    assert not licence.is_licensed(printed)


def test_every_transcript_has_an_address_of_its_own_and_there_are_enough() -> None:
    sources = [each["source"] for each in list_transcripts()]
    assert len(set(sources)) == len(sources) >= 25
    assert all(each["seen"] for each in list_transcripts())
