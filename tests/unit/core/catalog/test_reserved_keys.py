"""What vsml writes into a VM is decided by the file's own keys, and by no advanced setting beside them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.fakes.requirements import cluster
from tests.unit.core.sites import one_host
from vsphere_ml.core.catalog.reserved_keys import refusal
from vsphere_ml.core.model.marks import CLUSTER_KEY, NODE_KEY
from vsphere_ml.core.placement.solve import solve
from vsphere_ml.core.rules.table import BY_ID

if TYPE_CHECKING:
    from tests.golden import Golden


def test_every_advanced_setting_that_vsml_writes_is_refused_in_a_file() -> None:
    written = solve(cluster(1), one_host()).placements[0].target.extra_config.keys() - {CLUSTER_KEY, NODE_KEY}
    assert len(written) == 5
    assert not [key for key in written if refusal(key) is None]


@pytest.mark.parametrize(
    "key",
    [
        "vcpu.hotadd",
        "VCPU.HotAdd",
        "mem.hotadd",
        "sched.mem.pin",
        "sched.cpu.latencySensitivity",
        "uefi.secureBoot.enabled",
        "numa.0.affinity",
        "pciPassthru0.vgpu",
        "pciPassthru12.allowedDevices",
    ],
)
def test_what_contradicts_it_is_told_with_what_decides_it(key: str, golden: Golden) -> None:
    texts = refusal(key)
    assert texts is not None
    golden(texts[0])
    assert set(re.findall(r"rule ([a-z-]+)", texts[0])) <= BY_ID.keys()


@pytest.mark.parametrize(
    "key",
    [
        "pciPassthru0.cfg.enable_uvm",
        "pciPassthru0.cfg.frame_rate_limiter",
        "pciPassthru0.msiEnabled",
        "numa.vcpu.preferHT",
        "numa.autosize",
        "sched.mem.lpage.enable1GPage",
        "disk.EnableUUID",
        "guestinfo.userdata",
    ],
)
def test_other_advanced_settings_are_a_persons_own(key: str) -> None:
    assert refusal(key) is None
