"""The kernel's configuration: modules, settings, limits."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

from vsphere_ml.core.model.guest import Step, StepNeed
from vsphere_ml.core.units import parse_integer
from vsphere_ml.guest.playbooks.fields import FieldError, check_pattern
from vsphere_ml.guest.steps.system.content import Content
from vsphere_ml.guest.steps.system.shell import q
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vsphere_ml.core.model.guest import CommandAnswer, GuestFacts, Shell

_MODULE = re.compile(r"[A-Za-z0-9_-]+")
_KEY = re.compile(r"[a-zA-Z0-9_./-]+")
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")
_LIMIT = re.compile(r"unlimited|\d+")


def module_question(module: str) -> str:
    """Ask whether a module is loaded. lsmod writes `_` where people write `-`; what is built in shows under /sys."""
    name = module.replace("-", "_")
    return f"lsmod | grep -q '^{name} ' || test -d /sys/module/{name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelModule(Step):
    """A kernel module, loaded now and at every boot."""

    KIND: ClassVar[str] = "kernel_module"

    name: str

    def __post_init__(self) -> None:
        check_pattern("name", self.name, _MODULE, "the name of a kernel module")

    @property
    def title(self) -> str:
        return f"kernel module {self.name}"

    def probes(self, _facts: GuestFacts) -> Mapping[str, str]:
        return {"loaded": module_question(self.name), "at boot": self._at_boot.probe}

    def drift(self, seen: Mapping[str, CommandAnswer], _facts: GuestFacts) -> str | None:
        if not seen["loaded"].ok:
            return f"module {self.name} is not loaded"
        return f"module {self.name} is not loaded at boot" if self._at_boot.drift(seen["at boot"]) else None

    def apply(self, shell: Shell, _facts: GuestFacts) -> StepNeed:
        self._at_boot.put(shell)
        shell.run(f"modprobe {self.name}")
        return StepNeed.NOTHING

    @property
    def _at_boot(self) -> Content:
        return Content(path=f"/etc/modules-load.d/vsml-{self.name}.conf", text=f"{self.name}\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sysctl(Step):
    """Kernel settings, now and at every boot, in a file of their own."""

    KIND: ClassVar[str] = "sysctl"

    name: str
    settings: Mapping[str, str]

    def __post_init__(self) -> None:
        check_pattern("name", self.name, _NAME, "a plain name of lower-case letters, digits, `-` and `_`")
        if not self.settings:
            raise FieldError("settings", "is empty")
        for key, value in self.settings.items():
            check_pattern("settings", key, _KEY, "a kernel setting such as net.core.rmem_max")
            if "\n" in value or not value.strip():
                raise FieldError("settings", f"`{key}` must be one line that is not empty")

    @property
    def title(self) -> str:
        return f"sysctl {self.name}"

    def probes(self, _facts: GuestFacts) -> Mapping[str, str]:
        return {"file": self._file.probe} | {key: f"sysctl -n {q(key)}" for key in self.settings}

    def drift(self, seen: Mapping[str, CommandAnswer], _facts: GuestFacts) -> str | None:
        for key, wanted in self.settings.items():
            now = " ".join(seen[key].text.split())  # several numbers come apart by tabs
            if now != " ".join(wanted.split()):
                return f"{key} is {now or 'unknown'}, not {wanted}"
        return self._file.drift(seen["file"])

    def apply(self, shell: Shell, _facts: GuestFacts) -> StepNeed:
        self._file.put(shell)
        shell.run(f"sysctl -q -p {q(self._file.path)}")
        return StepNeed.NOTHING

    @property
    def _file(self) -> Content:
        text = "".join(f"{key} = {value}\n" for key, value in sorted(self.settings.items()))
        return Content(path=f"/etc/sysctl.d/90-vsml-{self.name}.conf", text=text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits(Step):
    """How much memory a process may lock, as RDMA needs it, and huge pages of the default size."""

    KIND: ClassVar[str] = "limits"

    memlock: str = "unlimited"  # KiB, as limits.conf counts
    hugepages: int = 0  # 0 leaves them as they are

    def __post_init__(self) -> None:
        check_pattern("memlock", self.memlock, _LIMIT, "a number of KiB or unlimited")
        if self.hugepages < 0:
            raise FieldError("hugepages", "must not be negative")

    @property
    def title(self) -> str:
        return "limits"

    def probes(self, _facts: GuestFacts) -> Mapping[str, str]:
        asked = {name: content.probe for name, content in self._files.items()}
        return asked | ({"pages": "sysctl -n vm.nr_hugepages"} if self.hugepages else {})

    def drift(self, seen: Mapping[str, CommandAnswer], _facts: GuestFacts) -> str | None:
        for name, content in self._files.items():
            if drift := content.drift(seen[name]):
                return drift
        if self.hugepages and (parse_integer(seen["pages"].text) or 0) < self.hugepages:
            return f"{seen['pages'].text or 'no'} huge pages, not {self.hugepages}"
        return None

    def apply(self, shell: Shell, _facts: GuestFacts) -> StepNeed:
        for content in self._files.values():
            content.put(shell)
        shell.run("systemctl daemon-reexec")
        if not self.hugepages:
            return StepNeed.NOTHING
        shell.run(f"sysctl -q -w vm.nr_hugepages={self.hugepages}")
        # Memory in pieces gives fewer than asked; right after a boot it is whole.
        pages = shell.ask({"pages": "sysctl -n vm.nr_hugepages"})["pages"].text
        return StepNeed.NOTHING if (parse_integer(pages) or 0) >= self.hugepages else StepNeed.REBOOT

    @property
    def _files(self) -> dict[str, Content]:
        login = "".join(f"{who} {kind} memlock {self.memlock}\n" for who in ("*", "root") for kind in ("soft", "hard"))
        memlock = "infinity" if self.memlock == "unlimited" else f"{self.memlock}K"
        files = {
            "login": Content(path="/etc/security/limits.d/90-vsml.conf", text=login),
            # Services, the container engine among them, do not pass through pam_limits.
            "services": Content(
                path="/etc/systemd/system.conf.d/90-vsml.conf", text=f"[Manager]\nDefaultLimitMEMLOCK={memlock}\n"
            ),
        }
        if self.hugepages:
            text = f"vm.nr_hugepages = {self.hugepages}\n"
            files["hugepages"] = Content(path="/etc/sysctl.d/90-vsml-hugepages.conf", text=text)
        return files
