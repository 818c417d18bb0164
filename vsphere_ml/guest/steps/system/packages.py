"""Debian packages, and the repositories they come from."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

from vsphere_ml.core.model.guest import Step, StepNeed
from vsphere_ml.guest.playbooks.fields import (
    FieldError,
    FileSource,
    check_address,
    check_checksum,
    check_pattern,
)
from vsphere_ml.guest.steps.system.artifact import fetch_artifact
from vsphere_ml.guest.steps.system.content import Content
from vsphere_ml.guest.steps.system.shell import install, q, words
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from vsphere_ml.core.model.guest import CommandAnswer, GuestFacts, Shell

PACKAGE = re.compile(r"[a-z0-9][a-z0-9+.-]+(=[A-Za-z0-9.+:~-]+)?")
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")


def packages_question(names: Iterable[str]) -> str:
    """Ask which of some packages are installed, and in which version."""
    bare = [each.partition("=")[0] for each in names]
    return f"dpkg-query -W -f '${{db:Status-Abbrev}}|${{Package}}|${{Version}}\\n' {words(bare)} 2>/dev/null || :"


def missing_packages(names: Iterable[str], seen: CommandAnswer) -> list[str]:
    """Return the packages that are not installed, or not in the version asked for."""
    there = {}
    for line in seen.out.splitlines():
        status, _, rest = line.partition("|")
        name, _, version = rest.partition("|")
        if status[1:2] == "i":  # the second letter is the state; the first is what was asked of dpkg
            there[name] = version
    wanted = (each.partition("=") for each in names)
    return [f"{name}{eq}{pin}" for name, eq, pin in wanted if name not in there or (pin and there[name] != pin)]


def unfinished_install(name: str, seen: CommandAnswer) -> str | None:
    """Say that dpkg began to install a package and did not end; its programs may answer all the same."""
    states = {line[1:2] for line in seen.out.splitlines()}
    # Half installed, unpacked, half configured: the next apt-get stumbles over it, whatever it is asked for.
    return f"{name.partition('=')[0]} is half installed" if states & set("HUF") else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Packages(Step):
    """Debian packages by apt. With `only_from`, apt sees that repository alone, as a site without internet needs it."""

    KIND: ClassVar[str] = "packages"

    names: tuple[str, ...]
    only_from: str = ""

    def __post_init__(self) -> None:
        if not self.names:
            raise FieldError("names", "is empty")
        for name in self.names:
            check_pattern("names", name, PACKAGE, "a package, with `=version` or without")
        if self.only_from:
            check_pattern("only_from", self.only_from, _NAME, "the name of an apt_repository step")

    @property
    def title(self) -> str:
        return f"package{'s' if len(self.names) > 1 else ''} {', '.join(self.names)}"

    def probes(self, _facts: GuestFacts) -> Mapping[str, str]:
        return {"installed": packages_question(self.names)}

    def drift(self, seen: Mapping[str, CommandAnswer], _facts: GuestFacts) -> str | None:
        missing = missing_packages(self.names, seen["installed"])
        return f"{', '.join(missing)} not installed" if missing else None

    def apply(self, shell: Shell, facts: GuestFacts) -> StepNeed:
        install(shell, self.names, facts, self._options)
        return StepNeed.NOTHING

    @property
    def _options(self) -> str:
        if not self.only_from:
            return ""
        return f"-o Dir::Etc::sourcelist={_sources(self.only_from)} -o Dir::Etc::sourceparts=-"


@dataclass(frozen=True, slots=True, kw_only=True)
class AptRepository(Step):
    """An apt repository with the key it is signed by. `trusted` takes one without a key, on your word."""

    KIND: ClassVar[str] = "apt_repository"

    name: str
    url: str
    suite: str = "/"
    components: tuple[str, ...] = ()
    key: FileSource = FileSource("")
    key_sha256: str = ""
    trusted: bool = False

    def __post_init__(self) -> None:
        check_pattern("name", self.name, _NAME, "a plain name of lower-case letters, digits, `-` and `_`")
        check_address("url", self.url)
        for name, text in (("url", self.url), ("suite", self.suite), *(("components", c) for c in self.components)):
            if not text or any(letter.isspace() for letter in text):
                raise FieldError(name, f"`{text}` must be one word")
        if self.suite.endswith("/") and self.components:
            raise FieldError("components", "a flat repository, whose suite ends with `/`, has none")
        if bool(self.key) == self.trusted:
            raise FieldError("key", "expected one of `key` and `trusted = true`")
        check_checksum("key_sha256", self.key, self.key_sha256)

    @property
    def title(self) -> str:
        return f"apt repository {self.name}"

    def probes(self, _facts: GuestFacts) -> Mapping[str, str]:
        return {"list": self._list.probe, "key": f"sha256sum < {q(self._key_path)}"}

    def drift(self, seen: Mapping[str, CommandAnswer], _facts: GuestFacts) -> str | None:
        if self.key and not seen["key"].ok:
            return f"the key of {self.name} is not there"
        if self.key_sha256 and seen["key"].text.partition(" ")[0] != self.key_sha256:
            return f"the key of {self.name} is another one than was pinned"
        return self._list.drift(seen["list"])

    def apply(self, shell: Shell, facts: GuestFacts) -> StepNeed:
        if self.key:
            key = fetch_artifact(self.key, shell, facts, self.key_sha256)
            shell.run(f"install -D -m 644 {q(key)} {q(self._key_path)}")
        self._list.put(shell)
        return StepNeed.NOTHING

    @property
    def _key_path(self) -> str:
        # apt distinguishes an armoured key from a binary one by the name's end.
        ending = "gpg" if self.key.endswith(".gpg") else "asc"
        return f"/etc/apt/keyrings/{self.name}.{ending}"

    @property
    def _list(self) -> Content:
        signed = f"[signed-by={self._key_path}]" if self.key else "[trusted=yes]"
        text = " ".join(["deb", signed, self.url, self.suite, *self.components])
        return Content(path=_sources(self.name), text=f"{text}\n")


def _sources(name: str) -> str:
    return f"/etc/apt/sources.list.d/{name}.list"
