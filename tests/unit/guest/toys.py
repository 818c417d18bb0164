"""Steps and a guest as small as can be, to show how a guest converges."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from vsphere_ml.core.errors import GuestError
from vsphere_ml.core.model.guest import CommandAnswer, Playbook, Step, StepNeed

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from vsphere_ml.core.model.guest import GuestFacts, Shell
    from vsphere_ml.core.secret import Secret


@dataclass(slots=True)
class Lamps:
    """A guest that is nothing but lamps. `set NAME` lights one, `later NAME` at the next boot."""

    name: str = "node-1"
    lit: set[str] = field(default_factory=set)
    later: set[str] = field(default_factory=set)
    broken: set[str] = field(default_factory=set)  # commands that fail
    deaf: set[str] = field(default_factory=set)  # commands that succeed and do nothing
    questions: int = 0
    reboots: int = 0
    history: list[str] = field(default_factory=list)

    def ask(self, commands: Mapping[str, str]) -> Mapping[str, CommandAnswer]:
        self.questions += 1
        return {name: CommandAnswer(0 if command in self.lit else 1, "") for name, command in commands.items()}

    def run(
        self, command: str, *, stdin: Secret | str | None = None, timeout_s: float = 1800.0, as_root: bool = True
    ) -> CommandAnswer:
        self.history.append(command)
        if command in self.broken:
            raise GuestError(
                reason=f"`{command}` ended with 1",
                code="guest.command-failed",
                target="node-1",
                details=("last words",),
            )
        verb, lamp = command.split()
        if command not in self.deaf:
            {"set": self.lit.add, "later": self.later.add, "dim": self.lit.discard}[verb](lamp)
        return CommandAnswer(0, "")

    def write(self, path: str, text: Secret | str, *, mode: int = 0o644, owner: str = "root:root") -> None:
        raise AssertionError(path)

    def put(self, local: Path, path: str, *, mode: int = 0o644) -> None:
        raise AssertionError(path)

    def get(self, path: str, local: Path) -> None:
        raise AssertionError(path)

    def reboot(self, deadline_s: float = 900.0) -> None:
        self.history.append("reboot")
        self.reboots += 1
        self.lit |= self.later
        self.later.clear()


@dataclass(frozen=True, slots=True, kw_only=True)
class Lit(Step):
    """A lamp that is lit; `boot` when only a reboot lights it; `dims` puts another one out."""

    KIND: ClassVar[str] = "lit"

    lamp: str
    boot: bool = False
    dims: str = ""

    @property
    def title(self) -> str:
        return f"lamp {self.lamp}"

    def probes(self, _facts: GuestFacts) -> Mapping[str, str]:
        return {"lit": self.lamp}

    def drift(self, seen: Mapping[str, CommandAnswer], _facts: GuestFacts) -> str | None:
        return None if seen["lit"].ok else f"{self.lamp} is dark"

    def apply(self, shell: Shell, _facts: GuestFacts) -> StepNeed:
        shell.run(f"{'later' if self.boot else 'set'} {self.lamp}")
        if self.dims:
            shell.run(f"dim {self.dims}")
        return StepNeed.REBOOT if self.boot else StepNeed.NOTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class AfterBoot(Lit):
    """A lamp that is not to be touched while a reboot is pending."""

    AFTER_REBOOT: ClassVar[bool] = True


def playbook(*steps: Step) -> Playbook:
    return Playbook(name="lamps", about="Light.", steps=steps, digest="0" * 64)
