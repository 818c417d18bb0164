"""The distribution's own packages, from a mirror: for sites whose guests have no way to the internet."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

from vsphere_ml.core.model.guest import Step, StepNeed
from vsphere_ml.guest.playbooks.fields import check_address, check_pattern
from vsphere_ml.guest.steps.system.shell import q
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vsphere_ml.core.model.guest import CommandAnswer, GuestFacts, Shell

# No letter of these means anything to sed's `s` command.
_URL = re.compile(r"((https?://|file:/)[A-Za-z0-9._~:/@%+-]+)?")
_ARCHIVE = r"https?://([a-z0-9-]+[.])*(archive[.]ubuntu[.]com|ports[.]ubuntu[.]com|deb[.]debian[.]org)/[^ ]*"
_SECURITY = r"https?://(security[.]ubuntu[.]com|security[.]debian[.]org|deb[.]debian[.]org/debian-security)[^ ]*"
_FILES = "/etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources"


@dataclass(frozen=True, slots=True, kw_only=True)
class AptMirror(Step):
    """Ubuntu's and Debian's own repositories taken from a mirror; other repositories stay. Without `url`, nothing."""

    KIND: ClassVar[str] = "apt_mirror"

    url: str = ""
    security: str = ""  # of security updates, where they lie elsewhere than under `url`

    def __post_init__(self) -> None:
        for name, text in (("url", self.url), ("security", self.security)):
            check_address(name, text)
            check_pattern(name, text, _URL, "the address of a mirror, such as https://mirror.example.com/ubuntu")

    @property
    def title(self) -> str:
        return "apt mirror"

    def probes(self, _facts: GuestFacts) -> Mapping[str, str]:
        if not self.url:
            return {}
        # `-s`, since a pattern without a file stands for itself.
        return {"away": f"grep -hsEo '^[^#]*({_ARCHIVE}|{_SECURITY})' {_FILES} | grep -Eo 'https?://[^ ]*' | sort -u"}

    def drift(self, seen: Mapping[str, CommandAnswer], _facts: GuestFacts) -> str | None:
        if not self.url:
            return None
        if not seen["away"].ok:
            return "what apt goes to cannot be read"
        away = [each for each in seen["away"].text.split() if each not in {self.url, self.security}]
        return f"apt goes to {', '.join(away)}" if away else None

    def apply(self, shell: Shell, _facts: GuestFacts) -> StepNeed:
        if not self.url:
            return StepNeed.NOTHING
        # Debian's security updates lie below the host of the others, so they are looked for first.
        edits = ["/^ *#/b", f"s#{_SECURITY}#{self.security or self.url}#", f"s#{_ARCHIVE}#{self.url}#"]
        sed = f"sed -E -i --follow-symlinks {' '.join(f'-e {q(each)}' for each in edits)}"
        shell.run(f'for each in {_FILES}; do test ! -f "$each" || {sed} "$each" || exit; done')
        return StepNeed.NOTHING
