"""A shell that writes down what it is told, and answers what a case says. For what no fake has a meaning for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from vsphere_ml.core.errors import GuestError
from vsphere_ml.core.model.guest import CommandAnswer
from vsphere_ml.core.secret import Secret

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def answer(text: str | Mapping[str, Any]) -> CommandAnswer:
    """Return an answer as a case writes it: a text, which is a success, or a table."""
    return (
        CommandAnswer(0, text) if isinstance(text, str) else CommandAnswer(text.get("status", 0), text.get("out", ""))
    )


@dataclass(slots=True)
class Recorder:
    """`answers` are found by name of the probe; what is not there fails with status 1 and says nothing."""

    answers: Mapping[str, CommandAnswer] = field(default_factory=dict)
    refuses: str | None = None  # a command that contains this fails
    name: str = "node-1"
    told: list[str] = field(default_factory=list)  # everything but questions, in order
    asked: list[dict[str, str]] = field(default_factory=list)
    files: dict[str, tuple[str, int, str]] = field(default_factory=dict)
    inputs: list[str] = field(default_factory=list)

    def ask(self, commands: Mapping[str, str]) -> Mapping[str, CommandAnswer]:
        self.asked.append(dict(commands))
        return {name: self.answers.get(name, CommandAnswer(1, "")) for name in commands}

    def run(
        self, command: str, *, stdin: Secret | str | None = None, timeout_s: float = 1800.0, as_root: bool = True
    ) -> CommandAnswer:
        self.told.append(command)
        self.inputs.append(stdin.reveal() if isinstance(stdin, Secret) else stdin or "")
        if self.refuses is not None and self.refuses in command:
            raise GuestError(f"`{command}` ended with 1", code="guest.command-failed", details=("no space left",))
        return CommandAnswer(0, "")

    def write(self, path: str, text: Secret | str, *, mode: int = 0o644, owner: str = "root:root") -> None:
        self.told.append(f"write {path} {mode:04o} {owner}")
        self.files[path] = (text.reveal() if isinstance(text, Secret) else text, mode, owner)

    def put(self, local: Path, path: str, *, mode: int = 0o644) -> None:
        self.told.append(f"put {local} {path}")

    def get(self, path: str, local: Path) -> None:
        self.told.append(f"get {path} {local}")

    def reboot(self, deadline_s: float = 900.0) -> None:
        self.told.append("reboot")
