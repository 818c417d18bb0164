"""Boards that NVIDIA's tables lack: what a host offers of them decides."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.fakes.pictures import gpu, pci
from tests.fakes.requirements import cluster, nodes
from tests.unit.core.sites import one_host, planned, refused
from vsphere_ml.core.model.device_kinds import GpuKind, NicKind
from vsphere_ml.core.model.inventory import PciAddress, Sharing, VgpuProfile
from vsphere_ml.core.model.placement import WantVgpu
from vsphere_ml.core.model.spec import GpuRequest, NicRequest
from vsphere_ml.core.placement.vm_config import MMIO_SIZE
from vsphere_ml.core.rules.reasons import RejectReason
from vsphere_ml.core.units import gib

if TYPE_CHECKING:
    from vsphere_ml.core.model.inventory import Inventory

NEW = "nvidia_b9000_dc"  # no such board
GPUS = ("0000:3b:00.0", "0000:3c:00.0")


def site(mode: str = "sameSize", **knobs: object) -> Inventory:
    """Return one host with two GPUs of 96 GiB that nobody has heard of."""
    sliced = [VgpuProfile(name=f"{NEW}-{size}c", framebuffer=gib(size)) for size in (96, 48, 32)]
    mig = [VgpuProfile(name=f"{NEW}-{n}-{24 * n}c", framebuffer=gib(24 * n), sharing=Sharing.MIG) for n in (4, 2, 1)]
    made = one_host(
        groups=(),
        profiles=tuple(mig if mode == "multiInstanceGpu" else sliced),
        gpus=tuple(replace(gpu(each, mode=mode), memory=gib(95)) for each in GPUS),
        **knobs,
    )
    (host,) = made.hosts
    strange = {PciAddress(each): pci(each, 0x10DE, 0xFFFF, "GB999", "0000:37:00.0", 0x0302) for each in GPUS}
    return replace(made, hosts=(replace(host, pci={**host.pci, **strange}),))


def asked(profile: str, count: int = 1, kind: GpuKind = GpuKind.VGPU) -> GpuRequest:
    return GpuRequest(profile=profile, count=count, kind=kind)


NO_NIC = NicRequest(kind=NicKind.NONE)


@pytest.mark.parametrize(
    ("profile", "most", "mode"),
    [
        ("B9000-DC-96C", 2, "sameSize"),
        ("B9000-DC-48C", 4, "sameSize"),
        ("B9000-DC-32C", 6, "sameSize"),
        ("B9000-DC-32C", 4, "mixedSize"),
        ("B9000-DC-4-96C", 2, "multiInstanceGpu"),
        ("B9000-DC-1-24C", 8, "multiInstanceGpu"),
    ],
)
def test_a_gpu_holds_as_many_as_the_offered_profiles_divide_it_into(profile: str, most: int, mode: str) -> None:
    kind = GpuKind.MIG if mode == "multiInstanceGpu" else GpuKind.VGPU
    small = {"memory": gib(16), "cpus": 2, "nic": NO_NIC, "gpu": asked(profile, kind=kind)}
    plan = planned(cluster(nodes(most, **small)), site(mode))
    assert len(plan.placements) == most
    assert refused(cluster(nodes(most + 1, **small)), site(mode)).code == "placement.infeasible"


def test_the_vm_gets_the_hosts_own_spelling_and_the_most_mmio_space() -> None:
    (placement,) = planned(cluster(nodes(1, nic=NO_NIC, gpu=asked("B9000-DC-96C"))), site()).placements
    assert WantVgpu(profile=f"{NEW}-96c") in placement.target.devices
    assert placement.target.extra_config[MMIO_SIZE] == "512"


def test_a_profile_that_the_host_does_not_offer_is_refused_by_what_it_offers() -> None:
    error = refused(cluster(nodes(1, nic=NO_NIC, gpu=asked("B9000-DC-24C"))), site())
    assert f"{NEW}-96c" in error.details[0]
    assert " ," not in error.details[0], "no GPU is named of which nobody has a part"


def test_a_host_without_the_vgpu_manager_is_passed_over_for_that() -> None:
    bare = one_host(groups=(), profiles=(), vgpu_manager="")
    error = refused(cluster(nodes(1, nic=NO_NIC)), bare)
    assert error.hint == RejectReason.MANAGER.value
    unknown = one_host(groups=(), profiles=(), vgpu_manager=None)
    assert refused(cluster(nodes(1, nic=NO_NIC)), unknown).hint == RejectReason.PROFILE.value


def test_a_gpu_of_a_known_board_gives_nothing_of_an_unknown_one() -> None:
    known = site()
    (host,) = known.hosts
    a100 = {PciAddress(each): pci(each, 0x10DE, 0x20F1, "GA100", "0000:37:00.0", 0x0302) for each in GPUS}
    other = replace(known, hosts=(replace(host, pci={**host.pci, **a100}),))
    assert refused(cluster(nodes(1, nic=NO_NIC, gpu=asked("B9000-DC-96C"))), other).code == "placement.infeasible"


@pytest.mark.parametrize(("most", "told"), [(None, False), (16, True), (9, False)])
def test_a_vm_has_as_many_vgpus_as_its_host_tells_and_else_as_documented(most: int | None, *, told: bool) -> None:
    gpus = tuple(gpu(f"0000:{number:02x}:00.0") for number in range(16, 32))
    there = one_host(groups=(), gpus=gpus, most_vgpus=most)
    wanted = cluster(nodes(1, nic=NO_NIC, gpu=asked("A100-40C", 10)))
    if told:
        assert len(planned(wanted, there).placements[0].gpus) == 10
    else:
        assert "vgpus-per-vm" in refused(wanted, there).details[0]
