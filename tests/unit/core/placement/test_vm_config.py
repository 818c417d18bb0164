from __future__ import annotations

from tests.fakes.pictures import (
    quad_8u3,
    seed_7u2,
)
from tests.fakes.requirements import cluster, nodes, seed_cluster
from tests.unit.core.sites import one_host
from vsphere_ml.core.model.placement import WantGroup, WantNic, WantSriov, WantVgpu
from vsphere_ml.core.model.spec import GpuRequest, Latency
from vsphere_ml.core.placement.solve import solve


def test_the_target_is_complete() -> None:
    target = solve(cluster(1), quad_8u3()).placements[0].target
    assert target.extra_config == {
        "guestinfo.vsml.cluster": "train",
        "guestinfo.vsml.node": "node-1",
        "pciPassthru.use64bitMMIO": "TRUE",
        "pciPassthru.64bitMMIOSizeGB": "128",
        "pciPassthru.allowP2P": "TRUE",
        "pciPassthru.RelaxACSforP2P": "TRUE",
        "numa.nodeAffinity": "0",
    }
    assert (target.hardware_version, target.firmware, target.secure_boot) == (20, "efi", False)
    assert [type(want) for want in target.devices] == [WantNic, WantGroup]


def test_the_pairing_target_has_its_devices_one_by_one() -> None:
    target = solve(seed_cluster(1), seed_7u2()).placements[0].target
    assert [type(want) for want in target.devices] == [WantNic, WantVgpu, WantSriov]
    assert WantVgpu(profile="grid_a100-40c") in target.devices
    assert target.hardware_version == 17


def test_mmio_space_grows_with_the_gpus_to_a_power_of_two_and_can_be_said() -> None:
    three = nodes(1, gpu=GpuRequest(profile="A100-40C", count=3), cpus=4)
    key = "pciPassthru.64bitMMIOSizeGB"
    assert solve(cluster(three), one_host()).placements[0].target.extra_config[key] == "512"
    assert solve(cluster(nodes(1, mmio_gib=64)), one_host()).placements[0].target.extra_config[key] == "64"


def test_high_latency_sensitivity_reserves_every_vcpu_its_full_clock() -> None:
    target = solve(cluster(nodes(1, latency=Latency.HIGH)), one_host()).placements[0].target
    assert (target.latency, target.cpu_reservation_mhz) == ("high", 16 * 2600)


def test_a_persons_own_keys_win() -> None:
    wanted = nodes(1, extra_config={"pciPassthru.allowP2P": "FALSE", "my.key": "1"}, peer_to_peer=False)
    keys = solve(cluster(wanted), one_host()).placements[0].target.extra_config
    assert keys["pciPassthru.allowP2P"] == "FALSE"
    assert keys["my.key"] == "1"
    assert "pciPassthru.RelaxACSforP2P" not in keys
