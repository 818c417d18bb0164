"""NVIDIA's GPU boards as vGPU knows them: data sheets, no site.

Sources: board codes and time-sliced C-series sizes, and the table "MMIO space required", are from NVIDIA's appendix
"NVIDIA AI Enterprise and NVIDIA vGPU (C-Series)"; PCI device ids are from pci.ids.
"""

from __future__ import annotations

from vsphere_ml.lazy_dataclass import dataclass

NVIDIA = 0x10DE


@dataclass(frozen=True, slots=True)
class Board:
    """One GPU board: its code in profile names, and what a full-framebuffer vGPU of it takes."""

    code: str  # A100X
    title: str
    full_gb: int  # the number in the full profile's name: 40 in A100X-40C
    framebuffer_mib: int  # of the full profile
    device: int | None  # PCI device id, when pci.ids has one that is this board and no other
    mmio_table_gib: int | None  # None: not in NVIDIA's table
    mig: bool = False

    @property
    def full_profile(self) -> str:
        return f"{self.code}-{self.full_gb}C"

    @property
    def mmio_gib(self) -> int:
        """Return the 64-bit MMIO space one GPU needs: NVIDIA's table, or its rule for boards that are not in it.

        The rule is the framebuffer rounded up to a power of two, doubled; it gives the table's value for most boards
        and less for V100 and H100 64 GB.
        """
        return self.mmio_table_gib or 2 * power_of_two(self.full_gb)


def power_of_two(number: int) -> int:
    """Return the smallest power of two that is not below `number`."""
    return 1 << max(0, number - 1).bit_length()


BOARDS: tuple[Board, ...] = (
    Board("A100", "A100 PCIe 40GB", 40, 40960, 0x20F1, 128, mig=True),
    Board("A100X", "A100 SXM4 40GB", 40, 40960, 0x20B0, 128, mig=True),
    Board("A100D", "A100 PCIe 80GB", 80, 81920, 0x20B5, 256, mig=True),
    Board("A100DX", "A100 SXM4 80GB", 80, 81920, 0x20B2, 256, mig=True),
    Board("A30", "A30 PCIe", 24, 24576, 0x20B7, 64, mig=True),
    Board("A40", "A40", 48, 49152, 0x2235, 128),
    Board("A10", "A10", 24, 24576, 0x2236, 64),
    Board("A16", "A16", 16, 16384, None, None),
    Board("L4", "L4", 24, 24576, 0x27B8, 64),
    Board("L20", "L20", 48, 49152, None, 128),
    Board("L40", "L40", 48, 49152, 0x26B5, 128),
    Board("L40S", "L40S", 48, 49152, 0x26B9, None),
    Board("H100", "H100 PCIe 80GB", 80, 81920, 0x2331, 256, mig=True),
    Board("H100XM", "H100 SXM5 80GB", 80, 81920, 0x2330, 256, mig=True),
    Board("H100L", "H100 NVL 94GB", 94, 96246, 0x2321, 256, mig=True),
    Board("H100XL", "H100 SXM5 94GB", 94, 96246, None, 256, mig=True),
    Board("H100XS", "H100 SXM5 64GB", 64, 65536, None, 256, mig=True),
    Board("H200", "H200 NVL", 141, 144384, 0x233B, 512, mig=True),
    Board("H200X", "H200 SXM5", 141, 144384, 0x2335, 512, mig=True),
    Board("V100X", "V100 SXM2 16GB", 16, 16384, None, 64),
    Board("V100DX", "V100 SXM2 32GB", 32, 32768, None, 64),
    Board("T4", "T4", 16, 16384, None, None),
)

BY_CODE = {board.code: board for board in BOARDS}
BY_DEVICE = {board.device: board for board in BOARDS if board.device is not None}
