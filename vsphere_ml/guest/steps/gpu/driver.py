"""NVIDIA's guest driver for vGPU. It is not public, so there is no default for where it comes from.

Which drivers run under which vGPU manager is in section 1.2 of NVIDIA's release notes of vGPU software: those of
the manager's branch, those of the branch before it (15.0 and 19.0), and under a manager of a long-term branch those of
the long-term branch before it (19.0 for vSphere; taken to hold of 13 and 16 alike). A newer driver does not run.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

from vsphere_ml.core.errors import GuestError
from vsphere_ml.core.model.guest import Step, StepNeed
from vsphere_ml.core.units import parse_integer
from vsphere_ml.guest.playbooks.fields import FieldError, FileSource, check_checksum, check_pattern
from vsphere_ml.guest.steps.system.artifact import fetch_artifact
from vsphere_ml.guest.steps.system.content import Content
from vsphere_ml.guest.steps.system.kernel import module_question
from vsphere_ml.guest.steps.system.packages import packages_question, unfinished_install
from vsphere_ml.guest.steps.system.shell import WITH_COMPILER, install, install_build_tools, q, with_proxy
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vsphere_ml.core.model.guest import CommandAnswer, GuestFacts, Shell

VERSION = "nvidia-smi --query-gpu=driver_version --format=csv,noheader"
_VERSION = re.compile(r"\d{3}\.\d{2,3}(?:\.\d{2})?")
# What the installer calls its two sets of kernel modules, since 560 and before (NVIDIA driver README, "Open Linux
# Kernel Modules"). Without a word it takes what it prefers for the GPUs there are; Blackwell has open ones alone.
_MODULES = re.compile(r"open|proprietary|")
_SINCE = 560
_FORMER = {"open": "-m=kernel-open", "proprietary": "-m=kernel"}
_LICENCE = "modinfo -F license nvidia"
_BRANCHES = (450, 460, 470, 510, 525, 535, 550, 570, 580)  # of vGPU software 11 to 19
_LONG_TERM = (450, 470, 535, 580)


@dataclass(frozen=True, slots=True, kw_only=True)
class NvidiaDriver(Step):
    """The guest driver from a .deb or .run file, of a branch that runs under the host's vGPU manager."""

    KIND: ClassVar[str] = "nvidia_driver"

    source: FileSource
    version: str = ""  # taken from the file's name when that has it
    sha256: str = ""
    kernel_modules: str = ""  # open or proprietary, of a .run file; empty: as the installer chooses
    any_branch: bool = False

    def __post_init__(self) -> None:
        if not self.source.endswith((".run", ".deb")):
            raise FieldError("source", "expected a .run or .deb file")
        check_checksum("sha256", self.source, self.sha256)
        check_pattern("kernel_modules", self.kernel_modules, _MODULES, "`open` or `proprietary`")
        if self.kernel_modules and self._package:
            raise FieldError("kernel_modules", "is for a .run file; a .deb has modules of one kind")
        if not _VERSION.fullmatch(self.wanted):
            raise FieldError("version", "cannot be read from the file's name; write it, such as 525.105.17")

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
        self._check_branch(facts)
        modules = {"licence": _LICENCE} if self.kernel_modules else {}
        return (
            {"version": VERSION} | modules | ({"package": packages_question([self._package])} if self._package else {})
        )

    def drift(self, seen: Mapping[str, CommandAnswer], _facts: GuestFacts) -> str | None:
        if not seen["version"].ok:
            return "no NVIDIA driver answers"
        if "package" in seen and (half := unfinished_install(self._package, seen["package"])):
            return half
        there = seen["version"].text.partition("\n")[0]
        if there != self.wanted:
            return f"the NVIDIA driver is {there}, not {self.wanted}"
        # The open module says `Dual MIT/GPL`, the other `NVIDIA`.
        is_open = "licence" in seen and "MIT" in seen["licence"].text
        wrong = bool(self.kernel_modules) and is_open is not (self.kernel_modules == "open")
        return f"the NVIDIA kernel module is not the {self.kernel_modules} one" if wrong else None

    @property
    def _modules_option(self) -> str:
        """The installer's option for the kind of kernel modules; empty to leave it the choice."""
        if not self.kernel_modules:
            return ""
        since = int(branch(self.wanted)) >= _SINCE
        return f" --kernel-module-type={self.kernel_modules}" if since else f" {_FORMER[self.kernel_modules]}"

    def apply(self, shell: Shell, facts: GuestFacts) -> StepNeed:
        _without_nouveau(shell)
        if shell.ask({"nouveau": module_question("nouveau")})["nouveau"].ok:
            return StepNeed.REBOOT  # the installer refuses beside it, so the driver comes after
        path = fetch_artifact(self.source, shell, facts, self.sha256)
        install_build_tools(shell, facts)
        if path.endswith(".deb"):
            install(shell, [path], facts)
        else:
            shell.run(
                with_proxy(f"{WITH_COMPILER}; sh {q(path)} --silent --dkms{self._modules_option}", facts),
                timeout_s=3600,
            )
        shell.run("modprobe nvidia || :")
        return StepNeed.REBOOT if self.drift(shell.ask(self.probes(facts)), facts) else StepNeed.NOTHING

    def _check_branch(self, facts: GuestFacts) -> None:
        """Refuse before anything is asked or changed; `any_branch` is for those who know better.

        The vGPU manager has no part in a GPU that is handed through whole.
        """
        host = facts.vgpu_manager
        if self.any_branch or host is None or not facts.profile or runs_under(self.wanted, host):
            return
        raise GuestError(
            reason=f"driver {self.wanted} is of branch {branch(self.wanted)}, and the vGPU manager of its host "
            f"({host}) of branch {branch(host)}",
            code="guest.driver-branch",
            target=facts.name,
            hint=f"give a guest driver of branch {' or '.join(_branches_under(host))}; `any_branch = true` in the step "
            "skips this check",
        )


def branch(version: str) -> str:
    """Return the branch of a driver's version: 525 of 525.105.17."""
    return version.partition(".")[0]


def runs_under(driver: str, manager: str) -> bool:
    """Return whether NVIDIA's release notes allow this guest driver under this version of the vGPU manager."""
    return branch(driver) in _branches_under(manager)


def _branches_under(manager: str) -> tuple[str, ...]:
    """Return the guest drivers' branches that run under a vGPU manager, its own first."""
    own = branch(manager)
    number = parse_integer(own)
    if number is None:
        return (own,)
    lines = (_BRANCHES, _LONG_TERM) if number in _LONG_TERM else (_BRANCHES,)
    before = (max((each for each in line if each < number), default=None) for line in lines)
    return (own, *dict.fromkeys(str(each) for each in before if each is not None))


def _without_nouveau(shell: Shell) -> None:
    """Keep the kernel's own driver off the GPU; where it is loaded already, it leaves at the reboot."""
    text = "blacklist nouveau\noptions nouveau modeset=0\n"
    blacklist = Content(path="/etc/modprobe.d/vsml-nouveau.conf", text=text)
    if blacklist.drift(shell.ask({"file": blacklist.probe})["file"]):
        blacklist.put(shell)
        shell.run("test ! -x /usr/sbin/update-initramfs || update-initramfs -u")
