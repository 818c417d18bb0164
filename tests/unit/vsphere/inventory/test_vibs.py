"""Which of a host's packages is the vGPU manager."""

from __future__ import annotations

import pytest

from vsphere_ml.vsphere.inventory.vibs import version_of


@pytest.mark.parametrize(
    ("name", "version", "manager"),
    [
        ("NVIDIA-AIE_ESXi_7.0.2_Driver", "470.63-1OEM.702.0.0.17630552", "470.63"),
        ("NVD-AIE_ESXi_8.0.0_Driver", "525.105.14-1OEM.800.1.0.20613240", "525.105.14"),
        ("NVIDIA-VMware_ESXi_7.0_Host_Driver", "510.85.03-1OEM.700.0.0.15525992", "510.85.03"),
        ("nvdgpumgmtdaemon", "525.105.14-1OEM.700.1.0.15843807", None),
        ("esx-base", "8.0.3-24022510", None),
        ("nmlx5-core", "4.23.0.36-1OEM", None),
    ],
)
def test_the_driver_is_the_manager_and_its_daemon_is_not(name: str, version: str, manager: str | None) -> None:
    assert version_of(name, version) == manager
