"""What no site can give is refused before one is looked at, with what to write instead."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from vsphere_ml.core.catalog import catalogue
from vsphere_ml.core.catalog.boards import BOARDS, Board
from vsphere_ml.core.catalog.profiles import known_names, parse
from vsphere_ml.core.model.device_kinds import GpuKind, NicKind
from vsphere_ml.core.model.spec import GpuRequest, NicRequest
from vsphere_ml.core.nodes.gpu import device_ids, kind_of, nic_refusal, profile_note, profile_refusal, refusal

if TYPE_CHECKING:
    from tests.golden import Golden

EVERY = [str(each.name) for board in BOARDS for each in catalogue.profiles_of(board)]


@pytest.mark.parametrize("name", EVERY)
def test_every_profile_of_nvidias_tables_can_be_asked_for(name: str) -> None:
    assert refusal(GpuRequest(kind=kind_of(name), profile=name)) is None
    assert refusal(GpuRequest(kind=kind_of(name), profile=f"nvidia_{name.lower()}")) is None


def test_every_board_has_its_whole_gpu_among_its_profiles() -> None:
    assert {name for name in EVERY if parse(name).is_full} == {board.full_profile for board in BOARDS}


def test_the_names_that_a_slip_is_held_against_are_those_of_the_catalogue() -> None:
    assert {*known_names()} == {*EVERY}


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("A100-12C", "A100 PCIe 40GB has A100-40C, A100-20C, A100-10C"),
        ("A100-3-40C", "A100 PCIe 40GB has A100-7-40C, A100-4-20C"),
        ("A40-1-6C", "`A40-48C`"),
        ("H100XN-80C", "`H100XM-80C`"),
        ("A10O-40C", "`A100-40C`"),
        ("A4O-48C", "`A40-48C`"),
        ("A10O-3-20C", "`A100-3-20C`"),
    ],
)
def test_a_profile_that_nvidias_tables_lack_is_noted_with_what_else_is_meant(name: str, instead: str) -> None:
    assert instead in str(profile_note(parse(name)))
    assert profile_refusal(name) is None


@pytest.mark.parametrize("name", ["B200-180C", "P40-24C", "B9000-192C"])
def test_a_board_that_is_none_of_the_tables_is_not_taken_for_another(name: str) -> None:
    assert "`" not in str(profile_note(parse(name)))


@pytest.mark.parametrize(("text", "meant"), [("A1OO", "`A100`"), ("a-100", "`A100`"), ("V100", ""), ("B200", "")])
def test_a_gpu_that_is_none_is_refused_with_the_board_that_is_close(text: str, meant: str) -> None:
    with pytest.raises(ValueError, match=text) as raised:
        device_ids(text)
    assert str(raised.value).count("`") == (4 if meant else 2)
    assert meant in str(raised.value)


def test_a_series_that_is_not_for_compute_is_refused_whatever_the_board() -> None:
    assert "`A40-48C`" in str(profile_refusal("A40-48Q"))
    assert "`RTX6000-ADA-48C`" in str(profile_refusal("RTX6000-Ada-48Q"))


@pytest.mark.parametrize("name", EVERY)
def test_nothing_is_noted_of_what_the_tables_have(name: str) -> None:
    assert profile_note(parse(name)) is None


@pytest.mark.parametrize(("kind", "count"), [(GpuKind.VGPU, 1), (GpuKind.NVLINK, 2), (GpuKind.NVLINK, 4)])
def test_nothing_speaks_against_a_board_that_nobody_has_heard_of(kind: GpuKind, count: int) -> None:
    assert refusal(GpuRequest(kind=kind, profile="B9000-192C", count=count)) is None


def test_of_a_board_that_nobody_has_heard_of_no_mig_is_joined_and_no_three_gpus() -> None:
    assert refusal(GpuRequest(kind=GpuKind.NVLINK, profile="B9000-2-48C", count=2)) is not None
    assert refusal(GpuRequest(kind=GpuKind.NVLINK, profile="B9000-192C", count=3)) is not None
    assert refusal(GpuRequest(kind=GpuKind.MIG, profile="B9000-192C")) is not None


def test_a_profile_larger_than_its_board_names_the_boards_that_have_it(golden: Golden) -> None:
    text = str(profile_note(parse("A100-80C")))
    golden(text)


@pytest.mark.parametrize(
    "asked",
    [
        GpuRequest(profile="A100-3-20C"),
        GpuRequest(kind=GpuKind.MIG, profile="A100-20C"),
        GpuRequest(kind=GpuKind.MIG, profile="L40S-48C"),
        GpuRequest(kind=GpuKind.NVLINK, profile="A100-7-40C", count=2),
        GpuRequest(kind=GpuKind.NVLINK, profile="A100-20C", count=2),
        GpuRequest(kind=GpuKind.NVLINK, profile="L4-24C", count=2),
        GpuRequest(kind=GpuKind.NVLINK, profile="A100X-40C", count=3),
        GpuRequest(kind=GpuKind.NVLINK, profile="A100-40C", count=4),
    ],
)
def test_a_combination_no_site_has_is_refused(asked: GpuRequest, golden: Golden) -> None:
    golden(refusal(asked))


@pytest.mark.parametrize("count", [2, 4, 8])
def test_an_nvswitch_board_is_joined_in_every_size(count: int) -> None:
    assert refusal(GpuRequest(kind=GpuKind.NVLINK, profile="H100XM-80C", count=count)) is None


# By NVIDIA's list of vGPUs with peer-to-peer transfers, and its page on NVSwitch.
PAIRED = "A100 A100D A30 A40 H100 H100L H100XL H100XS H200 V100X V100DX"
SWITCHED = "A100X A100DX H100XM H200X"


@pytest.mark.parametrize("board", BOARDS, ids=lambda each: each.code)
def test_each_board_is_joined_as_nvidia_lists_it(board: Board) -> None:
    def most(*counts: int) -> int:
        asked = (GpuRequest(kind=GpuKind.NVLINK, profile=board.full_profile, count=count) for count in counts)
        return max((each.count for each in asked if refusal(each) is None), default=0)

    wanted = 8 if board.code in SWITCHED.split() else 2 if board.code in PAIRED.split() else 0
    assert most(2, 4, 8) == wanted


@pytest.mark.parametrize("kind", [GpuKind.NVLINK, GpuKind.MIG])
def test_a_device_group_of_gpu_and_nic_is_of_single_passthrough_gpus(kind: GpuKind) -> None:
    asked = GpuRequest(kind=kind, profile="A100-40C" if kind is GpuKind.NVLINK else "A100-3-20C", count=2)
    assert nic_refusal(asked, NicRequest(kind=NicKind.DEVICE_GROUP)) is not None
    assert nic_refusal(asked, NicRequest(kind=NicKind.SRIOV)) is None
