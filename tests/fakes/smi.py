"""nvidia-smi of an ESXi host in memory. What it prints is written by hand, after printed outputs of the real one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.core.catalog.boards import BY_DEVICE
from vsphere_ml.core.model.guest import CommandAnswer
from vsphere_ml.core.model.inventory import PciAddress
from vsphere_ml.core.tools.nvidia_smi import needs_reboot

if TYPE_CHECKING:
    from tests.fakes.esx import FakeEsx

_WORDS = {True: "Enabled", False: "Disabled"}


def run(machine: FakeEsx, command: str) -> CommandAnswer:
    """Return what nvidia-smi says; a command it has no meaning for is a failure of the test."""
    if "smi" in machine.fails:
        return CommandAnswer(127, "", "sh: nvidia-smi: not found\n")
    match command.split()[1:]:
        case ["--query-gpu=pci.bus_id,mig.mode.current,mig.mode.pending", "--format=csv,noheader"]:
            return CommandAnswer(0, "".join(_row(gpu, mode) for gpu, mode in machine.mig.items()))
        case ["-i", gpu, "-mig", value]:
            return _switch(machine, PciAddress(gpu), value == "1")
    raise AssertionError(f"nvidia-smi has no meaning for {command}")


def _row(gpu: PciAddress, mode: list[bool]) -> str:
    return f"0000{gpu.upper()}, {_WORDS[mode[1]]}, {_WORDS[mode[0]]}\n"


def _switch(machine: FakeEsx, gpu: PciAddress, value: bool) -> CommandAnswer:  # noqa: FBT001
    if "mig" in machine.fails:
        return CommandAnswer(3, "Unable to enable MIG Mode for GPU: Insufficient Permissions\n", "")
    machine.mig[gpu][0] = value
    board = BY_DEVICE[machine.host.pci[gpu].device]
    if needs_reboot(board):
        return CommandAnswer(
            0, f"Warning: MIG mode is in pending enable state for GPU 0000{gpu.upper()}:Not Supported\n"
        )
    machine.mig[gpu][1] = value
    return CommandAnswer(0, f"Enabled MIG Mode for GPU 0000{gpu.upper()}\nAll done.\n")
