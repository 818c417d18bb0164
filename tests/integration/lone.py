"""One lab guest without a vCenter."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.integration import guests
from vsphere_ml.core.errors import GuestError
from vsphere_ml.core.nodes.firstboot import HOST_KEYS
from vsphere_ml.lab.guests import folder as lab_folder
from vsphere_ml.lab.guests import hub, image, machine
from vsphere_ml.lab.guests.boot.firstboot import LabGpu, LabVm

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vsphere_ml.ssh.session.shell import SshShell

NAME, DRIVER = "node-1", "535.183.04"
MANAGEMENT = {"mac": "00:50:56:00:00:01", "kind": "vmxnet3"}


@dataclass(frozen=True)
class Guest:
    """A guest that has had its first boot, and where the lab keeps it."""

    home: Path
    report: machine.ToolsReport

    def enter(self) -> SshShell:
        """Return a way into the guest; when it refuses, its sshd's words stand in the test's output."""
        try:
            return guests.enter(self.home, NAME, self.report.address, self.report.guestinfo[HOST_KEYS])
        except GuestError:
            for log in _logs(self.home):
                sys.stderr.write(f"{log}:\n{log.read_text(errors='replace')}")
            raise


def _logs(home: Path) -> list[Path]:
    """Return what the guest's sshd and boot have written: its disk is mounted where the hub is."""
    center = hub.find(home)
    if center is None:
        return []
    disks = Path(f"/proc/{center.pid}/root{home}/disks")
    return sorted(disks.glob("*/upper/var/log/vsml-lab-*.log"))


@contextmanager
def guest(
    folder: Path, address: str, gpus: tuple[LabGpu, ...] = (), nvlinks: int = 0, nic: str = "passthrough"
) -> Iterator[Guest]:
    """Run one guest with a fast NIC of this kind and these GPUs."""
    lab_folder.make(folder, DRIVER, {image.CLOUD.name: image.make_image()})
    lifeline, held = os.pipe()
    center = hub.start(folder, lifeline)
    try:
        extra = guests.first_boot(folder, NAME, f"{address}/24")
        nics = ({"mac": "", "kind": nic}, MANAGEMENT)
        vm = LabVm(name=NAME, id="vm-1", extra_config=extra, nics=nics, gpus=gpus, nvlinks=nvlinks)
        machine.begin(center, vm)
        yield Guest(folder, machine.report(center, vm))
    finally:
        hub.end(folder)
        os.close(lifeline)
        os.close(held)
