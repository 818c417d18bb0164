"""A file with known content, as most steps want one."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from vsphere_ml.core.secret import Secret
from vsphere_ml.guest.steps.system.shell import q
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from vsphere_ml.core.model.guest import CommandAnswer, Shell


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """A file as a whole. An owner such as `alice:` means the user's own group, whatever its name."""

    path: str
    text: str | Secret
    mode: int = 0o644
    owner: str = "root:root"

    @property
    def probe(self) -> str:
        """Ask for mode, owner and checksum, so that the content itself never travels."""
        return f"stat -L -c '%a %U:%G' -- {q(self.path)} && sha256sum < {q(self.path)}"

    def drift(self, seen: CommandAnswer) -> str | None:
        parts = seen.out.split()
        if not seen.ok or len(parts) < 3:  # noqa: PLR2004 - mode, owner, checksum
            return f"{self.path} is not there"
        mode, owner, digest = parts[:3]
        if digest != self.digest:
            return f"{self.path} has other content"
        if mode != f"{self.mode:o}":
            return f"{self.path} has mode {mode}, not {self.mode:o}"
        if owner != self.owner and not (self.owner.endswith(":") and owner.startswith(self.owner)):
            return f"{self.path} belongs to {owner}, not {self.owner}"
        return None

    def put(self, shell: Shell) -> None:
        shell.write(self.path, self.text, mode=self.mode, owner=self.owner)

    @property
    def digest(self) -> str:
        text = self.text.reveal() if isinstance(self.text, Secret) else self.text
        return hashlib.sha256(text.encode()).hexdigest()


def block(text: str, name: str, lines: str) -> str:
    """Return a text with our marked block of lines put in or replaced, and the rest as it was."""
    begin, end = marks(name)
    before, found, rest = text.partition(f"{begin}\n")
    after = rest.partition(f"{end}\n")[2] if found else ""
    if before and not before.endswith("\n"):
        before += "\n"
    return f"{before}{begin}\n{lines}{end}\n{after}"


def marks(name: str) -> tuple[str, str]:
    """Return the lines around a block of ours."""
    return f"# begin {name}, kept by vsml", f"# end {name}"


def block_probe(path: str, name: str) -> str:
    """Ask for the lines of our block."""
    begin, end = marks(name)
    return f"awk -v b={q(begin)} -v e={q(end)} '$0 == e {{on = 0}} on {{print}} $0 == b {{on = 1}}' {q(path)}"
