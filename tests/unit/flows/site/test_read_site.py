"""How much of the site a file's decisions need."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.fakes.requirements import cluster, node
from vsphere_ml.core.model.device_kinds import GpuKind, NicKind
from vsphere_ml.flows.site.read_site import scope


@pytest.mark.parametrize(
    ("nic", "gpus", "asked"),
    [
        (NicKind.NONE, 1, False),
        (NicKind.SRIOV, 1, False),
        (NicKind.AUTO, 1, True),
        (NicKind.DEVICE_GROUP, 1, True),
        (NicKind.NONE, 2, True),  # NVLink may join them
    ],
)
def test_hosts_are_asked_for_device_groups_only_where_they_can_matter(nic: NicKind, gpus: int, *, asked: bool) -> None:
    one = node("node-01")
    wanted = replace(one, nic=replace(one.nic, kind=nic), gpu=replace(one.gpu, kind=GpuKind.VGPU, count=gpus))
    assert scope(replace(cluster(), nodes=(wanted,))).groups is asked
