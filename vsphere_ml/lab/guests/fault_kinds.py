"""The faults of guests by the names that people type, and which of them are in force."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING

from vsphere_ml.core.errors import ConfigError
from vsphere_ml.core.nearest import nearest_name
from vsphere_ml.lab.guests import faults, machine
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One thing that can go wrong. Without `end` it happens once and is over."""

    about: str
    begin: Callable[[Path, str, str], None]
    end: Callable[[Path, str, str], None] | None = None
    needs_package: bool = False
    ends_with_power: bool = False


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault in force."""

    kind: str
    package: str = ""

    def __str__(self) -> str:
        return f"{self.kind} ({self.package})" if self.package else self.kind


def _cut(home: Path, vm_id: str, package: str) -> None:
    if package:
        faults.cut_at_package(home, vm_id, package)
    else:
        faults.cut(home, vm_id)


KINDS = {
    "ssh-refused": Kind(
        about="sshd refuses everybody; sessions go on",
        begin=lambda home, vm, _: faults.refuse_ssh(home, vm),
        end=lambda home, vm, _: faults.accept_ssh(home, vm),
        ends_with_power=True,
    ),
    "cut": Kind(about="all sessions are cut, now or in the middle of installing --package", begin=_cut),
    "disk-full": Kind(
        about="nothing can be written any more",
        begin=lambda home, vm, _: faults.fill_disk(home, vm),
        end=lambda home, vm, _: faults.empty_disk(home, vm),
    ),
    "package-fails": Kind(
        about="the stand-in --package fails to install",
        begin=faults.fail_package,
        end=faults.repair_package,
        needs_package=True,
    ),
    "reboot": Kind(about="the guest reboots by itself", begin=lambda home, vm, _: faults.reboot(home, vm)),
    "host-key": Kind(
        about="sshd has another host key, which is published nowhere",
        begin=lambda home, vm, _: faults.change_host_key(home, vm),
        end=lambda home, vm, _: faults.own_host_key(home, vm),
    ),
    "slow": Kind(
        about="everything in the guest runs a quarter of the time",
        begin=lambda home, vm, _: faults.slow_guest(home, vm),
        end=lambda home, vm, _: faults.fast(home, vm),
        ends_with_power=True,
    ),
}


def describe_fault(kind: str, package: str) -> str:
    """Return what goes wrong now that it was begun, with the package by its name."""
    text = KINDS[kind].about
    return text.replace("--package", package) if package else text


def begin(home: Path, vm_id: str, kind: str, package: str = "") -> None:
    """Let a fault begin; ConfigError for one that is not known, and where its package is missing."""
    known = _kind_named(kind)
    if known.needs_package and not package:
        raise ConfigError(
            f"`{kind}` needs to know which package",
            code="lab.bad-fault",
            target=kind,
            hint="add --package, such as --package docker.io",
        )
    known.begin(home, vm_id, package)
    if known.end:
        at = machine.folder(home, vm_id)
        _note(at, [*(each for each in faults_of_guest(at) if each != Fault(kind, package)), Fault(kind, package)])


def end(home: Path, vm_id: str, kind: str | None = None) -> list[Fault]:
    """End the faults in force of one kind, or all; return those that were ended."""
    if kind is not None and _kind_named(kind).end is None:
        raise ConfigError(f"`{kind}` happens once and is over", code="lab.bad-fault", target=kind)
    at = machine.folder(home, vm_id)
    ended = [each for each in faults_of_guest(at) if kind in {None, each.kind}]
    for each in ended:
        if undo := KINDS[each.kind].end:
            undo(home, vm_id, each.package)
    _note(at, [each for each in faults_of_guest(at) if each not in ended])
    return ended


def faults_of_guest(at: Path) -> list[Fault]:
    """Return the faults in force of the guest with this folder."""
    return [*_read_faults(at / "faults"), *_read_faults(at / machine.UNTIL_OFF)]


def _read_faults(file: Path) -> list[Fault]:
    with suppress(OSError, ValueError):
        return [Fault(*pair) for pair in json.loads(file.read_text())]
    return []


def _note(at: Path, faults: list[Fault]) -> None:
    for name, passing in (("faults", False), (machine.UNTIL_OFF, True)):
        pairs = [[each.kind, each.package] for each in faults if KINDS[each.kind].ends_with_power is passing]
        (at / name).write_text(json.dumps(pairs))


def _kind_named(kind: str) -> Kind:
    if kind in KINDS:
        return KINDS[kind]
    near = nearest_name(kind, KINDS)
    raise ConfigError(
        f"lab guests have no fault `{kind}`",
        code="lab.bad-fault",
        target=kind,
        hint=f"did you mean `{near}`?" if near else f"use one of {', '.join(KINDS)}",
    )
