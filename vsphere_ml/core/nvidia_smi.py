"""NVIDIA's `nvidia-smi` on ESXi, where the vGPU manager brings it: MIG mode, what to type and what answers mean.

Formats: NVIDIA's appendix on C-series (`--query-gpu=pci.bus_id,mig.mode.current`), and the field `mig.mode.pending` of
`nvidia-smi --help-query-gpu`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from vsphere_ml.core.inventory import PciAddress

if TYPE_CHECKING:
    from vsphere_ml.core.boards import Board
    from vsphere_ml.core.guest import Answer

QUERY = "nvidia-smi --query-gpu=pci.bus_id,mig.mode.current,mig.mode.pending --format=csv,noheader"
ON, OFF = "Enabled", "Disabled"
_FIELDS = 3
_DOMAIN = 4  # digits that vSphere gives a PCI domain; nvidia-smi gives it eight


@dataclass(frozen=True, slots=True, kw_only=True)
class MigSeen:
    """A GPU's MIG mode: now, and what it becomes at the next reset or boot."""

    current: bool
    pending: bool


def setting(gpu: PciAddress, value: bool) -> str:  # noqa: FBT001 - the one thing it is about
    return f"nvidia-smi -i {gpu} -mig {int(value)}"


def modes(printed: str) -> dict[PciAddress, MigSeen]:
    """Return the MIG mode of each GPU that QUERY lists; a GPU that has none (`[N/A]`) is left out."""
    rows = ([cell.strip() for cell in line.split(",")] for line in printed.splitlines())
    return {
        _address(row[0]): MigSeen(current=row[1] == ON, pending=row[2] == ON)
        for row in rows
        if len(row) == _FIELDS and {row[1], row[2]} <= {ON, OFF}
    }


def words(answer: Answer) -> str:
    """Return what a command that failed said, in one line; nvidia-smi writes its errors to standard output."""
    said = " ".join((answer.err.strip() or answer.out.strip()).split())
    return said[:300] or f"it ended with status {answer.status}"


def needs_reboot(board: Board) -> bool:
    """Return whether MIG mode of a board counts from the host's next boot only: Ampere's does, Hopper's does not.

    Source: NVIDIA's appendix on C-series, "reboot the ESXi host" for GPUs of the Ampere architecture only.
    """
    return board.code.startswith("A")


def _address(bus_id: str) -> PciAddress:
    """Return `00000000:3B:00.0` as vSphere writes it."""
    domain, _, rest = bus_id.lower().partition(":")
    return PciAddress(f"{domain[-_DOMAIN:]}:{rest}")
