"""Files and lines in them."""

from __future__ import annotations

import re
from dataclasses import field
from typing import TYPE_CHECKING, ClassVar

from vsphere_ml.core.errors import GuestError
from vsphere_ml.core.model.guest import Step, StepNeed
from vsphere_ml.guest.playbooks.fields import FieldError, Template, check_pattern
from vsphere_ml.guest.steps.system.content import Content
from vsphere_ml.guest.steps.system.shell import q
from vsphere_ml.guest.templates import render
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vsphere_ml.core.model.guest import CommandAnswer, GuestFacts, Shell

_MODE = re.compile(r"0?[0-7]{3,4}")
_SHOWN_MODE = re.compile(r"[0-7]{1,5}")  # by stat
_OWNER = re.compile(r"[a-z_][a-z0-9_-]*:[a-z0-9_-]*")


def check_absolute(name: str, path: str) -> None:
    """Refuse a path that is relative, or ends as a folder."""
    if not path.startswith("/") or path.endswith("/") or "\n" in path:
        raise FieldError(name, f"`{path}` is not an absolute path of a file")


@dataclass(frozen=True, slots=True, kw_only=True)
class File(Step):
    """A file with the given text, or rendered from a template."""

    KIND: ClassVar[str] = "file"

    path: str
    text: str = ""
    template: Template = Template("")
    values: Mapping[str, str] = field(default_factory=dict)
    mode: str = "0644"
    owner: str = "root:root"

    def __post_init__(self) -> None:
        check_absolute("path", self.path)
        check_pattern("mode", self.mode, _MODE, "an octal mode such as 0644")
        check_pattern("owner", self.owner, _OWNER, "an owner such as root:root")
        if bool(self.text) == bool(self.template):
            raise FieldError("text", "expected one of `text` and `template`")
        if mistakes := render.mistakes(self.template, render.KNOWN | self.values.keys()):
            raise FieldError("template", "has mistakes", problems=mistakes)

    @property
    def title(self) -> str:
        return f"file {self.path}"

    def probes(self, facts: GuestFacts) -> Mapping[str, str]:
        return {"file": self.content(facts).probe}

    def drift(self, seen: Mapping[str, CommandAnswer], facts: GuestFacts) -> str | None:
        return self.content(facts).drift(seen["file"])

    def apply(self, shell: Shell, facts: GuestFacts) -> StepNeed:
        self.content(facts).put(shell)
        return StepNeed.NOTHING

    def content(self, facts: GuestFacts) -> Content:
        """Return what the file is to hold; ConfigError `guest.template` when its template cannot be rendered."""
        text = (
            render.render(self.template, {**render.guest_values(facts), **self.values}, self.path)
            if self.template
            else self.text
        )
        return Content(path=self.path, text=text, mode=int(self.mode, 8), owner=self.owner)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line(Step):
    """A line in a file. It takes the place of the last line that `match` finds, or else comes last."""

    KIND: ClassVar[str] = "line"

    path: str
    line: str
    match: str = ""

    def __post_init__(self) -> None:
        check_absolute("path", self.path)
        if not self.line.strip() or "\n" in self.line:
            raise FieldError("line", "expected one line that is not empty")
        try:
            re.compile(self.match)
        except re.error as error:
            raise FieldError("match", f"is no regular expression: {error}") from error

    @property
    def title(self) -> str:
        return f"line in {self.path}"

    def probes(self, _facts: GuestFacts) -> Mapping[str, str]:
        return {"line": f"grep -Fxq -e {q(self.line)} -- {q(self.path)}"}

    def drift(self, seen: Mapping[str, CommandAnswer], _facts: GuestFacts) -> str | None:
        return None if seen["line"].ok else f"{self.path} has no line `{self.line}`"

    def apply(self, shell: Shell, facts: GuestFacts) -> StepNeed:
        mode, owner, text = read_existing(shell, self.path, facts)
        shell.write(self.path, self.placed(text), mode=mode, owner=owner)
        return StepNeed.NOTHING

    def placed(self, text: str) -> str:
        """Return the text with the line in it."""
        lines = lines_of(text)
        found = [at for at, each in enumerate(lines) if self.match and re.search(self.match, each)]
        if found:
            lines[found[-1]] = self.line
        else:
            lines.append(self.line)
        return "\n".join(lines) + "\n"


def lines_of(text: str) -> list[str]:
    """Return a file's lines as Unix counts them; `splitlines` would also end them at form feeds and the like."""
    return text.removesuffix("\n").split("\n") if text else []


def read_existing(shell: Shell, path: str, facts: GuestFacts) -> tuple[int, str, str]:
    """Return mode, owner and text of a file that may not be there yet."""
    answers = shell.ask({"stat": f"stat -L -c '%a %U:%G' -- {q(path)}", "text": f"cat -- {q(path)}"})
    if not answers["stat"].ok:
        return 0o644, "root:root", ""
    text = answers["text"].out
    if "\N{REPLACEMENT CHARACTER}" in text:
        raise GuestError(reason=f"{path} is not UTF-8 text and is left alone", code="guest.not-text", target=facts.name)
    mode, _, owner = answers["stat"].text.partition(" ")
    return int(mode, 8) if _SHOWN_MODE.fullmatch(mode) else 0o644, owner, text
