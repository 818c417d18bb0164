"""A guest in memory behind the `Shell` port: files, packages, modules, services, users, and what a reboot does to them.

A probe that changes it fails the test, and so does a command it has no meaning for; `programs` takes more of them.
"""

from __future__ import annotations

import shlex
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.fakes import programs
from tests.fakes import sh as posix
from vsphere_ml.core.errors import ConfigError, GuestError
from vsphere_ml.core.model.guest import CommandAnswer
from vsphere_ml.core.secret import Secret

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tests.fakes.program import Program

LAST_LINES = 20


@dataclass(frozen=True, slots=True)
class File:
    text: str
    mode: int = 0o644
    owner: str = "root:root"


@dataclass(frozen=True, slots=True)
class Service:
    active: bool = True
    enabled: bool = True


@dataclass(slots=True)
class FakeGuest:
    """What stands in a guest. Tests read and set any of it."""

    name: str = "node-1"
    files: dict[str, File] = field(default_factory=dict)
    folders: set[str] = field(default_factory=lambda: {"/", "/etc", "/run", "/tmp", "/var", "/root"})
    folder_modes: dict[str, tuple[int, str]] = field(default_factory=dict)  # and owners; 755 of root otherwise
    packages: dict[str, str] = field(default_factory=dict)  # name to version
    available: dict[str, str] = field(default_factory=dict)  # what apt knows
    modules: set[str] = field(default_factory=set)
    loadable: set[str] = field(default_factory=set)
    services: dict[str, Service] = field(default_factory=dict)
    users: dict[str, int] = field(default_factory=lambda: {"root": 0})
    login: str = "ubuntu"  # who signs in
    acting: str = "root"  # as whom a command runs now
    sysctls: dict[str, str] = field(default_factory=dict)
    boot_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    # What it refuses or has seen.
    programs: dict[str, Program] = field(default_factory=dict)  # beyond, or instead of, tests.fakes.programs
    disk_full: bool = False
    unreachable: bool = False
    cut_after: int | None = None  # commands that still go through before the connection breaks
    round_trips: int = 0
    reboots: int = 0
    history: list[str] = field(default_factory=list)  # commands run, and files written as `write PATH`
    received: list[tuple[str, str]] = field(default_factory=list)  # command and its standard input, in clear

    def ask(self, commands: Mapping[str, str]) -> Mapping[str, CommandAnswer]:
        if not commands:
            return {}
        self._reach("one question")
        before = self._picture()
        answers = {name: self._shell(command, "") for name, command in commands.items()}
        if self._picture() != before:
            raise AssertionError(f"a probe changed the guest: {list(commands.values())}")
        return answers

    def run(
        self, command: str, *, stdin: Secret | str | None = None, timeout_s: float = 1800.0, as_root: bool = True
    ) -> CommandAnswer:
        self._reach(command)
        self.history.append(command)
        text = stdin.reveal() if isinstance(stdin, Secret) else stdin or ""
        if stdin is not None:
            self.received.append((command, text))
        self.acting = "root" if as_root else self.login
        answer = self._shell(command, text)
        self.acting = "root"
        if isinstance(stdin, Secret) and text:
            answer = CommandAnswer(answer.status, answer.out.replace(text, "***"), answer.err.replace(text, "***"))
        if not answer.ok:
            raise self._failed(command, answer)
        return answer

    def write(self, path: str, text: Secret | str, *, mode: int = 0o644, owner: str = "root:root") -> None:
        self._reach(f"write {path}")
        self.history.append(f"write {path}")
        plain = text.reveal() if isinstance(text, Secret) else str(text)
        self._place(path, File(plain, mode, owner))

    def put(self, local: Path, path: str, *, mode: int = 0o644) -> None:
        try:
            data = local.read_bytes()
        except OSError as error:
            raise ConfigError(f"cannot read {local}", code="file.unreadable", target=str(local)) from error
        self._reach(f"put {path}")
        self.history.append(f"put {path}")
        self._place(path, File(data.decode("utf-8", "replace"), mode))

    def get(self, path: str, local: Path) -> None:
        self._reach(f"get {path}")
        if path not in self.files:
            raise GuestError(reason=f"{path} could not be read", code="guest.file-unreadable", target=self.name)
        local.write_text(self.files[path].text)

    def reboot(self, deadline_s: float = 900.0) -> None:
        """Come back as a machine does: only what is configured to be there at boot is there."""
        self._reach("reboot")
        self.history.append("reboot")
        self.reboots += 1
        self.boot_id = str(uuid.uuid4())
        self.files = {path: file for path, file in self.files.items() if not path.startswith(("/run/", "/tmp/"))}
        self.modules = {name.replace("-", "_") for name in self._at_boot("/etc/modules-load.d/")} & self.loadable
        self.services = {name: Service(each.enabled, each.enabled) for name, each in self.services.items()}
        pairs = (line.partition("=") for line in self._at_boot("/etc/sysctl.d/"))
        self.sysctls |= {name.strip(): value.strip() for name, _, value in pairs}

    # What the shell in it calls.

    def execute(self, words: Sequence[str], streams: posix.Streams) -> int:
        program = self.programs.get(words[0]) or programs.KNOWN.get(words[0])
        if program is None:
            raise posix.NoMeaning(f"{self.name} has no meaning for: {shlex.join(words)}")
        return program(self, list(words[1:]), streams)

    def read_file(self, path: str) -> str | None:
        if path == "/dev/null":
            return ""
        if path == "/proc/sys/kernel/random/boot_id":
            return self.boot_id + "\n"
        return self.files[path].text if path in self.files else None

    def write_file(self, path: str, text: str, *, append: bool) -> None:
        if path != "/dev/null":
            old = self.files.get(path, File(""))
            self._place(path, File(old.text + text if append else text, old.mode, old.owner))

    def has(self, path: str) -> bool:
        return path in self.files or self.is_folder(path)

    def about(self, path: str) -> tuple[int, str, int]:
        """Return mode, owner and size of what is there."""
        if (file := self.files.get(path)) is not None:
            return file.mode, file.owner, len(file.text.encode())
        return *self.folder_modes.get(path, (0o755, "root:root")), 4096

    def is_folder(self, path: str) -> bool:
        inside = path.rstrip("/") + "/"
        return path in self.folders or any(each.startswith(inside) for each in (*self.files, *self.folders))

    def _place(self, path: str, file: File) -> None:
        if self.disk_full or self.is_folder(path):
            why = "No space left on device" if self.disk_full else "it is a folder"
            raise GuestError(
                reason=f"{path} could not be written, and is as it was: {why}",
                code="guest.file-not-written",
                target=self.name,
                details=(why,),
            )
        self.files[path] = file

    def _at_boot(self, folder: str) -> list[str]:
        files = (file for path, file in sorted(self.files.items()) if path.startswith(folder))
        return [line for file in files for line in file.text.splitlines() if line and not line.startswith("#")]

    def _shell(self, command: str, stdin: str) -> CommandAnswer:
        streams = posix.Streams(stdin=stdin)
        try:
            status = posix.Shell(self).run(command, streams)
        except SyntaxError as error:
            return CommandAnswer(2, "", f"sh: 1: Syntax error: {error.msg}\n")
        return CommandAnswer(status, streams.out, streams.err)

    def _picture(self) -> tuple[object, ...]:
        state = (self.files, self.folders, self.packages, self.modules, self.services, self.users, self.sysctls)
        return tuple(each.copy() for each in state)

    def _reach(self, what: str) -> None:
        self.round_trips += 1
        if self.unreachable:
            raise GuestError(reason="cannot be reached", code="guest.unreachable", target=self.name)
        if self.cut_after is not None:
            if self.cut_after <= 0:
                reason = f"the connection broke during `{what}`"
                raise GuestError(reason=reason, code="guest.connection-lost", target=self.name)
            self.cut_after -= 1

    def _failed(self, command: str, answer: CommandAnswer) -> GuestError:
        return GuestError(
            reason=f"`{command}` ended with status {answer.status}",
            code="guest.command-failed",
            target=self.name,
            hint=f"less +G {self.name}.log",
            details=tuple((answer.out + answer.err).splitlines()[-LAST_LINES:]),
        )
