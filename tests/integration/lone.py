"""One lab guest without a vCenter."""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.integration import guests
from vsphere_ml.guest import firstboot
from vsphere_ml.lab.guests import folder as lab_folder
from vsphere_ml.lab.guests import hub, image, machine
from vsphere_ml.lab.guests.boot.firstboot import LabGpu, LabVm

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from vsphere_ml.ssh.session.shell import SshShell

NAME, DRIVER = "node-1", "535.183.04"
MANAGEMENT = {"mac": "00:50:56:00:00:01", "kind": "vmxnet3"}


@dataclass(frozen=True)
class Guest:
    """A guest that has had its first boot, and where the lab keeps it."""

    home: Path
    report: machine.ToolsReport

    def enter(self) -> SshShell:
        return guests.enter(self.home, NAME, self.report.address, self.report.guestinfo[firstboot.HOST_KEYS])


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
