"""What nvidia-smi says. Matrices and MIG modes are written by hand in the form that drivers print; no GPU told them."""

from __future__ import annotations

from pathlib import Path

import pytest

from vsphere_ml.core.model.guest import CommandAnswer
from vsphere_ml.core.model.inventory import PciAddress
from vsphere_ml.core.tools import nvidia_smi
from vsphere_ml.core.tools.nvidia_smi import GpuLink, MigSeen

# Two GPUs, each beside a NIC of its own, as on a server with two switches.
NUMBERED = """\
\t\x1b[4mGPU0\tGPU1\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m
GPU0\t X \tNV12\tPIX\tSYS\t0-15\t0\t\tN/A
GPU1\tNV12\t X \tSYS\tPXB\t16-31\t1\t\tN/A
NIC0\tPIX\tSYS\t X \tSYS
NIC1\tSYS\tPXB\tSYS\t X\t

Legend:

  X    = Self
  PIX  = Connection traversing at most a single PCIe bridge

NIC Legend:

  NIC0: mlx5_0
  NIC1: mlx5_bond_0
"""
WITHOUT_DRIVER = (Path(__file__).parents[3] / "cases" / "nvidia" / "nvidia-smi-without-driver.txt").read_text()
NAMED = "\tGPU0\tmlx5_1\tCPU Affinity\nGPU0\t X \tPHB\t0-15\nmlx5_1\tPHB\t X \n"
ALONE = "\t\x1b[4mGPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\nGPU0\t X \t0-15\t0\t\tN/A\n"


def test_the_rows_of_gpus_are_read() -> None:
    found = nvidia_smi.parse_topology(NUMBERED)
    assert GpuLink(gpu="GPU0", other="GPU1", kind="NV12") in found
    assert [(link.gpu, link.other, link.kind) for link in found if link.to_nic] == [
        ("GPU0", "NIC0", "PIX"),
        ("GPU0", "NIC1", "SYS"),
        ("GPU1", "NIC0", "SYS"),
        ("GPU1", "NIC1", "PXB"),
    ]


@pytest.mark.parametrize(
    ("printed", "worst"),
    [
        (NUMBERED, "PXB"),
        (NUMBERED.replace("PXB", "NODE"), "NODE"),
        (NAMED, "PHB"),
        (NAMED.replace("mlx5_1", "mlx5_bond_0"), "PHB"),
        (ALONE, ""),
        ("", ""),
        (WITHOUT_DRIVER, ""),
    ],
)
def test_the_worst_placed_gpu_counts_by_the_nic_next_to_it(printed: str, worst: str) -> None:
    assert nvidia_smi.gpu_to_nic(printed) == worst


def test_a_host_whose_driver_is_not_loaded_tells_no_mig_mode_and_says_why() -> None:
    assert nvidia_smi.modes(WITHOUT_DRIVER) == {}
    assert nvidia_smi.words(CommandAnswer(9, WITHOUT_DRIVER)).startswith("NVIDIA-SMI has failed")


def test_a_gpu_without_mig_is_left_out() -> None:
    text = "00000000:3B:00.0, Disabled, Enabled\n00000000:86:00.0, [N/A], [N/A]\n"
    assert nvidia_smi.modes(text) == {PciAddress("0000:3b:00.0"): MigSeen(current=False, pending=True)}
