"""The guests of a lab as they are now. Starts and stops nothing."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from vsphere_ml.core.errors import ConfigError
from vsphere_ml.core.nearest import nearest_name
from vsphere_ml.lab.guests import fault_kinds, hub, machine, shape
from vsphere_ml.lab.guests.boot import power_hook
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

ON, STARTING, OFF = "on", "starting", "off"


@dataclass(frozen=True, slots=True, kw_only=True)
class LabGuest:
    """A guest: what vCenter calls its VM, where it answers, and what was done to it on demand."""

    name: str
    vm: str
    address: str
    state: str
    host_key: str
    rate: str | None
    faults: tuple[str, ...]


def guests(lab: Path) -> list[LabGuest]:
    """Return the lab's guests in the order of their names."""
    folders = (lab / power_hook.GUESTS / "vms").glob("*")
    return sorted((_guest(lab, at) for at in folders if (at / "vm").exists()), key=lambda guest: guest.name)


def guests_named(lab: Path, names: Iterable[str]) -> list[LabGuest]:
    """Return the guests with these names; ConfigError `lab.unknown-guest` when there is none of a name."""
    known = {guest.name: guest for guest in guests(lab)}
    for name in names:
        if name not in known:
            near = nearest_name(name, known)
            raise ConfigError(
                f"no guest of this lab is called `{name}`",
                code="lab.unknown-guest",
                target=name,
                hint=f"did you mean `{near}`?"
                if near
                else "`vsml lab status` lists them; a VM has one once it was powered on",
            )
    return [known[name] for name in names]


def _guest(lab: Path, at: Path) -> LabGuest:
    return LabGuest(
        name=_text(at / "vm"),
        vm=machine.vm_id(at),
        address=_text(at / "address"),
        state=_state(lab, at),
        host_key=_text(at / "tools" / "host_key"),
        rate=shape.rate(at),
        faults=tuple(map(str, fault_kinds.faults_of_guest(at))),
    )


def _state(lab: Path, at: Path) -> str:
    if hub.find(lab / power_hook.GUESTS) is None or machine.pid(at) is None:
        return OFF
    return ON if (at / "tools" / machine.BOOTED).exists() else STARTING


def _text(file: Path) -> str:
    with suppress(OSError):
        return file.read_text().strip()
    return ""
