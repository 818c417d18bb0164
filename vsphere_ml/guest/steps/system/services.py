"""Services, and the clock."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

from vsphere_ml.core.model.guest import Step, StepNeed
from vsphere_ml.guest.playbooks.fields import FieldError, check_pattern
from vsphere_ml.guest.steps.system.content import Content
from vsphere_ml.guest.steps.system.shell import q
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vsphere_ml.core.model.guest import CommandAnswer, GuestFacts, Shell

_UNIT = re.compile(r"[A-Za-z0-9:_.@-]+")
_SYNCHRONISED = "timedatectl show -p NTPSynchronized --value"


@dataclass(frozen=True, slots=True, kw_only=True)
class Service(Step):
    """A systemd service that runs, now and after every boot."""

    KIND: ClassVar[str] = "service"

    name: str

    def __post_init__(self) -> None:
        check_pattern("name", self.name, _UNIT, "the name of a systemd unit")

    @property
    def title(self) -> str:
        return f"service {self.name}"

    def probes(self, _facts: GuestFacts) -> Mapping[str, str]:
        return {"enabled": f"systemctl is-enabled {q(self.name)}", "active": f"systemctl is-active {q(self.name)}"}

    def drift(self, seen: Mapping[str, CommandAnswer], _facts: GuestFacts) -> str | None:
        if not seen["active"].ok:
            return f"service {self.name} is {seen['active'].text or 'not known'}"
        return None if seen["enabled"].ok else f"service {self.name} does not start at boot"

    def apply(self, shell: Shell, _facts: GuestFacts) -> StepNeed:
        shell.run(f"systemctl enable {q(self.name)} && systemctl restart {q(self.name)}")
        return StepNeed.NOTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeSync(Step):
    """A clock that follows network time: the given servers', or what the guest is set up for."""

    KIND: ClassVar[str] = "time_sync"

    servers: tuple[str, ...] = ()
    wait_s: int = 60

    def __post_init__(self) -> None:
        for server in self.servers:
            if not server or any(letter.isspace() for letter in server):
                raise FieldError("servers", f"`{server}` is not the name or address of a server")
        if self.wait_s < 0:
            raise FieldError("wait_s", "must not be negative")

    @property
    def title(self) -> str:
        return "time"

    def probes(self, _facts: GuestFacts) -> Mapping[str, str]:
        asked = {"synchronised": _SYNCHRONISED}
        return asked | ({"servers": self._servers.probe} if self.servers else {})

    def drift(self, seen: Mapping[str, CommandAnswer], _facts: GuestFacts) -> str | None:
        if self.servers and (drift := self._servers.drift(seen["servers"])):
            return drift
        return None if seen["synchronised"].text == "yes" else "the clock does not follow network time"

    def apply(self, shell: Shell, _facts: GuestFacts) -> StepNeed:
        if self.servers:
            self._servers.put(shell)
            shell.run("timedatectl set-ntp true && systemctl restart systemd-timesyncd")
        else:
            shell.run("timedatectl set-ntp true")
        yes = f'test "$({_SYNCHRONISED})" = yes'
        shell.run(f"i=0; until {yes}; do i=$((i + 1)); test $i -le {self.wait_s} || break; sleep 1; done")
        return StepNeed.NOTHING

    @property
    def _servers(self) -> Content:
        text = f"[Time]\nNTP={' '.join(self.servers)}\n"
        return Content(path="/etc/systemd/timesyncd.conf.d/vsml.conf", text=text)
