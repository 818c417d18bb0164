"""NVIDIA's guest driver for vGPU. It is not public, so there is no default for where it comes from."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from vsphere_ml.core.errors import GuestError
from vsphere_ml.core.guest import Need
from vsphere_ml.guest.fields import SHA256, Source, Wrong, matching, pinned
from vsphere_ml.guest.steps.artifact import bring
from vsphere_ml.guest.steps.content import Content
from vsphere_ml.guest.steps.kernel import loaded
from vsphere_ml.guest.steps.packages import installed, unfinished
from vsphere_ml.guest.steps.shell import install, online, q

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vsphere_ml.core.guest import Answer, GuestFacts, Shell

VERSION = "nvidia-smi --query-gpu=driver_version --format=csv,noheader"
_VERSION = re.compile(r"\d{3}\.\d{2,3}(?:\.\d{2})?")


@dataclass(frozen=True, slots=True, kw_only=True)
class NvidiaDriver:
    """The guest driver from a .deb or .run file, of the same branch as the host's vGPU manager."""

    KIND: ClassVar[str] = "nvidia_driver"

    source: Source
    version: str = ""  # taken from the file's name when that tells it
    sha256: str = ""
    any_branch: bool = False

    def __post_init__(self) -> None:
        if not self.source.endswith((".run", ".deb")):
            raise Wrong("source", "expected a .run or .deb file")
        matching("sha256", self.sha256, SHA256, "a SHA-256 of 64 lower-case hexadecimal digits")
        pinned("sha256", self.source, self.sha256)
        if not _VERSION.fullmatch(self.wanted):
            raise Wrong("version", "is not told by the file's name; write it, such as 525.105.17")

    @property
    def wanted(self) -> str:
        """The version the guest is to have."""
        found = _VERSION.findall(self.source.name)
        return self.version or (found[-1] if found else "")

    @property
    def title(self) -> str:
        return f"NVIDIA driver {self.wanted}"

    @property
    def _package(self) -> str:
        """The package's name, as a .deb file's name begins with it; empty for a .run file."""
        return self.source.name.partition("_")[0] if self.source.endswith(".deb") else ""

    def probes(self, facts: GuestFacts) -> Mapping[str, str]:
        self._same_branch(facts)
        return {"version": VERSION} | ({"package": installed([self._package])} if self._package else {})

    def lack(self, seen: Mapping[str, Answer], _facts: GuestFacts) -> str | None:
        if not seen["version"].ok:
            return "no NVIDIA driver answers"
        if "package" in seen and (half := unfinished(self._package, seen["package"])):
            return half
        there = seen["version"].text.partition("\n")[0]
        return None if there == self.wanted else f"the NVIDIA driver is {there}, not {self.wanted}"

    def apply(self, shell: Shell, facts: GuestFacts) -> Need:
        _without_nouveau(shell)
        if shell.ask({"nouveau": loaded("nouveau")})["nouveau"].ok:
            return Need.REBOOT  # the installer refuses beside it, so the driver comes after
        path = bring(self.source, shell, facts, self.sha256)
        if path.endswith(".deb"):
            install(shell, [path], facts)
        else:
            install(shell, ["build-essential", "dkms"], facts, more=' "linux-headers-$(uname -r)"')
            shell.run(online(f"sh {q(path)} --silent --dkms", facts), timeout_s=3600)
        shell.run("modprobe nvidia || :")
        return Need.REBOOT if self.lack(shell.ask(self.probes(facts)), facts) else Need.NOTHING

    def _same_branch(self, facts: GuestFacts) -> None:
        """Refuse before anything is asked or changed; `any_branch` is for those who know better.

        The vGPU manager has no part in a GPU that is handed through whole.
        """
        host = facts.vgpu_manager
        if self.any_branch or host is None or not facts.profile or branch(host) == branch(self.wanted):
            return
        raise GuestError(
            f"{facts.name}: driver {self.wanted} is of branch {branch(self.wanted)}, and the vGPU manager of its host "
            f"({host}) of branch {branch(host)}",
            code="guest.driver-branch",
            target=facts.name,
            hint=f"give a guest driver of branch {branch(host)}, or set `any_branch = true` in the step",
        )


def branch(version: str) -> str:
    """Return the branch of a driver's version: 525 of 525.105.17."""
    return version.partition(".")[0]


def _without_nouveau(shell: Shell) -> None:
    """Keep the kernel's own driver off the GPU; where it is loaded already, it leaves at the reboot."""
    text = "blacklist nouveau\noptions nouveau modeset=0\n"
    blacklist = Content(path="/etc/modprobe.d/vsml-nouveau.conf", text=text)
    if blacklist.lack(shell.ask({"file": blacklist.probe})["file"]):
        blacklist.put(shell)
        shell.run("test ! -x /usr/sbin/update-initramfs || update-initramfs -u")
