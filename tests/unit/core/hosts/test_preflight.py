from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.fakes.pictures import (
    A100_GROUP,
    MGMT,
    port,
    quad_8u3,
    r750xa,
    seed_7u2,
    vm,
)
from tests.fakes.requirements import cluster, nodes, seed_cluster
from tests.unit.core.sites import one_host, provisioned, refused
from vsphere_ml.core.model.device_kinds import GpuKind, NicKind
from vsphere_ml.core.model.inventory import VmRef
from vsphere_ml.core.model.spec import GpuRequest, NicRequest
from vsphere_ml.core.units import gib

if TYPE_CHECKING:
    from tests.golden import Golden


def test_the_refusal_names_who_holds_the_gpus(golden: Golden) -> None:
    error = refused(cluster(nodes(2, host="esx-02", cpus=4, gpu=GpuRequest(profile="A100-40C", count=2))), quad_8u3())
    golden(error)
    assert (error.code, error.target) == ("placement.infeasible", "node-2")


@pytest.mark.parametrize(
    "knobs",
    [
        {"connected": False},
        {"maintenance": True},
        {"datastores": frozenset()},
        {"networks": frozenset()},
        {"max_hardware_version": 15},
        {"profiles": ()},
        {"memory": gib(32)},
        {"memory_reserved": gib(1000)},
        {"gpus": ()},
        {"nics": (), "groups": ()},
        {"networks": frozenset({MGMT}), "groups": ()},
        {"nics": (port("0000:3d:00.0", "vmnic4", sriov=False),), "groups": ()},
    ],
)
def test_every_host_says_why_not(knobs: dict[str, object], golden: Golden) -> None:
    error = refused(cluster(1), one_host(**knobs))
    golden(error.details)
    assert error.hint


def test_a_gpu_that_is_not_shared_direct_is_said_with_the_command(golden: Golden) -> None:
    gpus = tuple(replace(gpu, graphics_type="shared") for gpu in r750xa(1).gpus[:1])
    error = refused(cluster(1), one_host(gpus=gpus))
    assert (error.code, error.target) == ("placement.infeasible", "node-1")
    golden(error)


def test_a_gpu_in_mig_mode_is_no_whole_gpu(golden: Golden) -> None:
    gpus = (replace(r750xa(1).gpus[0], vgpu_mode="multiInstanceGpu"),)
    error = refused(cluster(1), one_host(gpus=gpus))
    assert (error.code, error.target) == ("placement.infeasible", "node-1")
    golden(error)


def test_used_virtual_functions_are_counted(golden: Golden) -> None:
    other = vm("other", "vm-50")
    nics = tuple(replace(nic, vfs=1, vf_holders=(other.ref,)) for nic in r750xa(1).nics)
    error = refused(cluster(1), one_host(nics=nics, groups=()))
    assert (error.code, error.target) == ("placement.infeasible", "node-1")
    golden(error)


@pytest.mark.parametrize(
    "knobs",
    [
        {"sriov_enabled": False},
        {"vfs": 8},
        {"switch": "dvs-gpu"},
        {"held_by": VmRef("vm-50")},
    ],
)
def test_a_port_that_is_not_to_be_had_as_a_whole_is_said_with_what_it_is(knobs: dict[str, Any], golden: Golden) -> None:
    nics = (replace(r750xa(1).nics[0], **knobs),)
    error = refused(cluster(nodes(1, nic=NicRequest(kind=NicKind.PASSTHROUGH))), one_host(nics=nics, groups=()))
    assert (error.code, error.target) == ("placement.infeasible", "node-1")
    golden(error)


@pytest.mark.parametrize(
    "knobs",
    [
        {"gpu": GpuRequest(kind=GpuKind.PASSTHROUGH, profile="A100-40C")},
        {"gpu": GpuRequest(kind=GpuKind.MIG, profile="A100-20C")},
        {"gpu": GpuRequest(profile="A100")},
    ],
)
def test_kinds_that_are_not_built_are_refused_by_name(knobs: dict[str, object], golden: Golden) -> None:
    error = refused(cluster(nodes(1, **knobs)), quad_8u3())
    assert error.code == "gpu.not-built"
    golden(error)


def test_more_vgpus_than_vsphere_gives_a_vm_are_refused(golden: Golden) -> None:
    wanted = nodes(1, gpu=GpuRequest(profile="A100-40C", count=5))
    error = refused(seed_cluster(wanted), seed_7u2())
    assert (error.code, error.target) == ("placement.infeasible", "node-1")
    golden(error)


@pytest.mark.parametrize("stands", [False, True])
def test_a_mistyped_nic_model_is_told_with_the_one_that_is_there(*, stands: bool, golden: Golden) -> None:
    site = one_host()
    if stands:
        site = provisioned(cluster(1), site)
    error = refused(cluster(nodes(1, nic=NicRequest(model="ConnectX6", port_group="roce"))), site)
    assert error.code == "placement.infeasible"
    golden(error)
    assert "nic.model" in error.hint


def test_a_standing_node_with_a_profile_nobody_offers_is_not_to_be_destroyed_for_it() -> None:
    site = provisioned(cluster(1), one_host())
    error = refused(cluster(nodes(1, gpu=GpuRequest(profile="H100-80C"))), site)
    assert "gpu.profile" in error.hint


def test_a_host_without_device_groups_is_not_told_as_one_whose_nics_are_held() -> None:
    wanted = nodes(1, nic=NicRequest(kind=NicKind.DEVICE_GROUP, port_group="roce"))
    error = refused(cluster(wanted), one_host(groups=()))
    assert "nic.kind" in error.hint
    assert "who holds" not in error.hint


@pytest.mark.parametrize(
    "components",
    [
        (),
        (replace(A100_GROUP.components[0], profile=None), A100_GROUP.components[1]),
        (A100_GROUP.components[0], replace(A100_GROUP.components[1], profile="grid_a100-40c")),
    ],
)
def test_a_malformed_device_group_is_told_as_malformed(components: Any, golden: Golden) -> None:
    wanted = nodes(1, nic=NicRequest(kind=NicKind.DEVICE_GROUP, port_group="roce"))
    error = refused(cluster(wanted), one_host(groups=(replace(A100_GROUP, components=components),)))
    golden(error.details)
