"""Follows a VM's power: reads the event that the lab vCenter writes, and answers what its guest reports."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TextIO

from vsphere_ml.lab import folders
from vsphere_ml.lab.guests import hub, machine
from vsphere_ml.lab.guests.boot.firstboot import LabGpu, LabVm

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

LIFELINE = 3  # the pipe that the lab vCenter opens, and that ends with it


def follow(event: Mapping[str, Any], home: Path, answer: TextIO) -> None:
    """Do what the event asks for; write a report when the guest answers."""
    vm = LabVm(
        name=event["vm"],
        id=event["moid"],
        extra_config=event.get("extraConfig") or {},
        nics=tuple(event.get("nics") or ()),
        gpus=tuple(LabGpu(**each) for each in event.get("gpus") or ()),
        nvlinks=event.get("nvlinks") or 0,
        template=event.get("template") or {},
        customization=event.get("customization"),
    )
    if event["event"] in {"power-on", "reset"}:
        _begin(vm, home, answer, reset=event["event"] == "reset")
    elif (center := hub.find(home)) is not None:
        _end(vm, center, answer, destroy=event["event"] == "destroy")


def _end(vm: LabVm, center: hub.Hub, answer: TextIO, *, destroy: bool) -> None:
    answers = machine.firmware(center, vm.id)
    (machine.destroy if destroy else machine.end)(center, vm.id)
    if answers:
        answer.write(json.dumps({"guestinfo": answers}) + "\n")


def _begin(vm: LabVm, home: Path, answer: TextIO, *, reset: bool) -> None:
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    with folders.hold_lock(home / ".lock"):  # guests take their addresses one after the other
        center = hub.start(home, LIFELINE)
        if reset:
            machine.end(center, vm.id)
        machine.begin(center, vm)
    report = machine.report(center, vm)
    answers = {"guest_ip": report.address, "hostname": report.hostname, "guestinfo": dict(report.guestinfo)}
    answer.write(json.dumps(answers) + "\n")
    answer.flush()
