"""The container engine, and NVIDIA's runtime for it."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, ClassVar

from vsphere_ml.core import json_text
from vsphere_ml.core.errors import GuestError
from vsphere_ml.core.model.guest import Step, StepNeed
from vsphere_ml.guest.playbooks.fields import check_address, check_pattern
from vsphere_ml.guest.steps.system.content import Content
from vsphere_ml.guest.steps.system.files import read_existing
from vsphere_ml.guest.steps.system.packages import PACKAGE, missing_packages, packages_question, unfinished_install
from vsphere_ml.guest.steps.system.shell import install, proxy_settings
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vsphere_ml.core.model.guest import CommandAnswer, GuestFacts, Shell

_TOOLKIT = "nvidia-container-toolkit"
_MIRROR = re.compile(r"https?://[A-Za-z0-9.:-]+/?")
_DAEMON = "/etc/docker/daemon.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Docker(Step):
    """Docker, running; behind the cluster's proxy when there is one, and with mirrors of Docker Hub when given."""

    KIND: ClassVar[str] = "docker"

    package: str = "docker.io"
    registry_mirrors: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_pattern("package", self.package, PACKAGE, "a package")
        for mirror in self.registry_mirrors:
            check_address("registry_mirrors", mirror)
            check_pattern(
                "registry_mirrors", mirror, _MIRROR, "the address of a mirror, such as https://mirror.example.com"
            )

    @property
    def title(self) -> str:
        return "Docker"

    def probes(self, facts: GuestFacts) -> Mapping[str, str]:
        asked = {"server": "docker version -f '{{.Server.Version}}'", "package": packages_question([self.package])}
        asked |= {"proxy": self._proxy(facts).probe} if facts.values.get("proxy") else {}
        return asked | ({"daemon": f"cat {_DAEMON}"} if self.registry_mirrors else {})

    def drift(self, seen: Mapping[str, CommandAnswer], facts: GuestFacts) -> str | None:
        if not seen["server"].ok:
            return "Docker does not answer"
        if half := unfinished_install(self.package, seen["package"]):
            return half
        if "proxy" in seen and (drift := self._proxy(facts).drift(seen["proxy"])):
            return drift
        if "daemon" in seen and self._with_mirrors(_settings(seen["daemon"].out)) is not None:
            return f"{_DAEMON} names other registry mirrors"
        return None

    def apply(self, shell: Shell, facts: GuestFacts) -> StepNeed:
        if facts.values.get("proxy"):
            self._proxy(facts).put(shell)
        if self.registry_mirrors:
            self._put_mirrors(shell, facts)
        install(shell, [self.package], facts)
        shell.run("systemctl daemon-reload && systemctl enable docker && systemctl restart docker")
        return StepNeed.NOTHING

    def _put_mirrors(self, shell: Shell, facts: GuestFacts) -> None:
        """Put the mirrors beside what else stands in Docker's file, NVIDIA's runtime for one."""
        mode, owner, text = read_existing(shell, _DAEMON, facts)
        there = _settings(text or "{}")
        if there is None:
            raise GuestError(
                reason=f"{_DAEMON} is not JSON and is left alone", code="guest.not-text", target=facts.name
            )
        if (wanted := self._with_mirrors(there)) is not None:
            shell.write(_DAEMON, f"{json.dumps(wanted, indent=4)}\n", mode=mode, owner=owner)

    def _with_mirrors(self, there: dict[str, Any] | None) -> dict[str, Any] | None:
        """Return Docker's settings with the mirrors in them, or None when they are."""
        wanted = {**(there or {}), "registry-mirrors": list(self.registry_mirrors)}
        return None if wanted == there else wanted

    def _proxy(self, facts: GuestFacts) -> Content:
        """Return the drop-in for dockerd, which pulls images itself."""
        settings = proxy_settings(facts.values["proxy"], facts)
        # systemd reads `%` as the beginning of a name of its own.
        lines = "".join(f'Environment="{name}={value.replace("%", "%%")}"\n' for name, value in settings)
        return Content(path="/etc/systemd/system/docker.service.d/vsml-proxy.conf", text=f"[Service]\n{lines}")


def _settings(text: str) -> dict[str, Any] | None:
    """Return what stands in Docker's file; None when it is not there or no JSON."""
    try:
        read = json_text.parse(text)
    except ValueError:
        return None
    return read if isinstance(read, dict) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerToolkit(Step):
    """NVIDIA Container Toolkit, with its runtime known to Docker."""

    KIND: ClassVar[str] = "container_toolkit"

    @property
    def title(self) -> str:
        return "NVIDIA Container Toolkit"

    def probes(self, _facts: GuestFacts) -> Mapping[str, str]:
        return {"installed": packages_question([_TOOLKIT]), "runtimes": "docker info -f '{{json .Runtimes}}'"}

    def drift(self, seen: Mapping[str, CommandAnswer], _facts: GuestFacts) -> str | None:
        if missing_packages([_TOOLKIT], seen["installed"]):
            return f"{_TOOLKIT} is not installed"
        return None if '"nvidia"' in seen["runtimes"].out else "Docker does not know the runtime nvidia"

    def apply(self, shell: Shell, facts: GuestFacts) -> StepNeed:
        if missing_packages([_TOOLKIT], shell.ask({"installed": packages_question([_TOOLKIT])})["installed"]):
            install(shell, [_TOOLKIT], facts)
        shell.run("nvidia-ctk runtime configure --runtime=docker && systemctl restart docker")
        return StepNeed.NOTHING
