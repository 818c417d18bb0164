"""`vsml runtime build`: a wheelhouse is built in one guest and brought here, and nothing of it is left in the guest."""

from __future__ import annotations

import hashlib
import json
import secrets
import shlex
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from vsphere_ml.core.codec import encode
from vsphere_ml.core.errors import ConfigError, GuestError, VsmlError
from vsphere_ml.core.order import count
from vsphere_ml.flows.bench.launch import in_each
from vsphere_ml.guest.events import Applied, Applying, Entering, GuestEnded
from vsphere_ml.guest.wheelhouse import build
from vsphere_ml.guest.wheelhouse import tools as probe
from vsphere_ml.guest.wheelhouse.manifest import FILE, describe_build, read_wheels
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from vsphere_ml.core.model.guest import Shell
    from vsphere_ml.core.ports.vcenter import GuestPlace, Guests
    from vsphere_ml.guest.events import GuestListener
    from vsphere_ml.guest.wheelhouse.build import WheelhouseRequest
    from vsphere_ml.guest.wheelhouse.manifest import WheelhouseManifest
    from vsphere_ml.guest.wheelhouse.tools import BuildTools

STAGE_S = 7200.0  # for one command: PyTorch for GPUs is 3 GB
NAME = "runtime build"  # where a playbook has its name


def build_wheelhouse(
    guests: Guests, place: GuestPlace, asked: WheelhouseRequest, *, into: Path, notify: GuestListener
) -> WheelhouseManifest:
    """Put the wheels and their manifest into a new folder of this machine, and return the manifest.

    NotPossible `runtime.no-…` where the build misses what it needs; GuestError `runtime.not-built` when Horovod
    came out without something that it was to have.
    """
    _check_new(into)
    notify(Entering(node=place.name))
    tools = in_each(guests, [place], lambda shell: _ask_tools(shell, asked))[place.name]
    probe.check_tools(tools, asked.carriers, in_container=asked.in_container)
    folder = build.work_folder(secrets.token_hex(4))
    begun = _Build(asked=asked, tools=tools, folder=folder, into=into, notify=notify)
    try:
        return in_each(guests, [place], begun.run)[place.name]
    except KeyboardInterrupt:
        raise KeyboardInterrupt from None  # with nothing that goes on in the guest
    finally:
        left = guests.each([place], lambda shell: build.clean_up(shell, folder))[place.name]
        error = left if isinstance(left, VsmlError) else None
        notify(GuestEnded(node=place.name, error=error, summary="the build's folder is removed"))


def _check_new(into: Path) -> None:
    if into.exists() and not (into.is_dir() and not any(into.iterdir())):
        raise ConfigError(f"{into} is there already", code="runtime.exists", target=str(into), hint="--into OTHER")


def _ask_tools(shell: Shell, asked: WheelhouseRequest) -> BuildTools:
    return probe.read(shell.name, shell.ask(probe.probes(asked.python, asked.mpirun, in_container=asked.in_container)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Build:
    """One build, from the first command in the guest to the folder here."""

    asked: WheelhouseRequest
    tools: BuildTools
    folder: str
    into: Path
    notify: GuestListener

    def run(self, shell: Shell) -> WheelhouseManifest:
        """Build, check and fetch; the folder here is there as a whole or not at all."""
        if self.asked.packages is not None:
            build.bring_packages(shell, self.folder, self.asked.packages)
        stages = build.stages(self.folder, self.asked, self.tools)
        printed, last = "", len(stages) + 1
        for number, stage in enumerate(stages, 1):
            self._notify_stage(shell, (number, last), stage.title, stage.doing)
            printed = shell.run(stage.command, timeout_s=STAGE_S).text
            self.notify(Applied(node=shell.name, step=stage.title))
        self._check_carriers(shell, printed)
        wheels = read_wheels(shell.name, shell.run(build.list_wheels(self.folder), timeout_s=STAGE_S).out)
        made = describe_build(self.asked, self.tools, wheels, datetime.now(UTC).isoformat(timespec="seconds"))
        fetched = f"being fetched, {made.size / 1e6:.0f} MB"
        self._notify_stage(shell, (last, last), count(len(wheels), "wheel"), fetched)
        self._fetch(shell, made)
        return made

    def _notify_stage(self, shell: Shell, at: tuple[int, int], title: str, doing: str) -> None:
        number, last = at
        self.notify(Applying(node=shell.name, playbook=NAME, number=number, steps=last, step=title, drift=doing))

    def _check_carriers(self, shell: Shell, printed: str) -> None:
        """Raise GuestError when the Horovod that was built says that something is missing."""
        missing = [each for each in self.asked.carriers if each not in printed.split()]
        if missing:
            raise GuestError(
                reason=f"Horovod was built, and has no {', '.join(missing)}",
                code="runtime.not-built",
                target=shell.name,
                hint="the log of the guest has what its build printed",
            )

    def _fetch(self, shell: Shell, made: WheelhouseManifest) -> None:
        try:
            self.into.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=self.into.parent, prefix=f".{self.into.name}-") as scratch:
                local = Path(scratch) / self.into.name
                local.mkdir()
                for each in made.wheels:
                    shell.get(f"{self.folder}/wheels/{each.file}", local / each.file)
                    _check_sum(shell, local / each.file, each.sha256)
                (local / FILE).write_text(json.dumps(encode(made), indent=2) + "\n", encoding="utf-8")
                local.replace(self.into)
        except OSError as error:
            raise ConfigError(
                f"cannot write {self.into}: {error.strerror}",
                code="file.unwritable",
                target=str(self.into),
                hint=f"ls -ld {shlex.quote(str(self.into.parent))}; df -h {shlex.quote(str(self.into.parent))}",
            ) from error


def _check_sum(shell: Shell, file: Path, wanted: str) -> None:
    with file.open("rb") as content:
        found = hashlib.file_digest(content, "sha256").hexdigest()
    if found != wanted:
        raise GuestError(
            reason=f"{file.name} arrived with another checksum than it has there",
            code="guest.file-unreadable",
            target=shell.name,
            hint="build again",
        )
