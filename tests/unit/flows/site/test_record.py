"""What a record holds of hosts and guests, and what it says of those that could not be asked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from vsphere_ml.core.errors import GuestError, VSphereError
from vsphere_ml.core.model.guest import CommandAnswer
from vsphere_ml.core.site_record import commands
from vsphere_ml.core.site_record.pseudonyms import Pseudonyms
from vsphere_ml.core.site_record.redact_text import TextRedactor
from vsphere_ml.flows.site.record import SiteReader

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from vsphere_ml.core.ports.vcenter import GuestPlace

SERIAL = "    Serial Number                         : 1324521034567\n"


@dataclass
class Shells:
    """Hosts' shells of which one cannot be entered."""

    starts_service: bool = True
    user: str = "root"
    asked: list[str] = field(default_factory=list)

    def run(self, host: str, command: str, timeout_s: float = 120.0) -> CommandAnswer:
        if host == "esx-02":
            raise VSphereError("closed", code="host.unreachable", target=host)
        self.asked.append(command)
        assert timeout_s > 0
        return CommandAnswer(0, f"{host}: of {command}\n{SERIAL}")

    def drop(self, host: str) -> None:
        raise AssertionError(host)


class Guests:
    """Two guests, of which one cannot be entered."""

    def each(self, places: Sequence[GuestPlace], work: Callable[[Any], Any]) -> Mapping[str, Any]:
        assert not places
        return {"node-1": work(self), "node-2": GuestError("closed", code="guest.unreachable")}

    def ask(self, asked: Mapping[str, str]) -> Mapping[str, CommandAnswer]:
        return {name: CommandAnswer(1, "", f"{command}: not found") for name, command in asked.items()}


def reader() -> SiteReader:
    return SiteReader(TextRedactor(Pseudonyms()))


def test_each_host_is_asked_every_command_and_one_that_is_closed_is_a_gap() -> None:
    read, shells = reader(), Shells()
    read.read_hosts(["esx-01", "esx-02"], shells)
    assert shells.asked == list(commands.HOST.values())
    assert {each.name for each in read.commands} == commands.HOST.keys()
    (gap,) = read.gaps
    assert gap.endswith(": host.unreachable")
    seen = "".join([gap, *(f"{each.machine} {each.text()}" for each in read.commands)])
    assert not {"esx-01", "esx-02", "1324521034567"} & set(seen.replace('"', " ").replace(":", " ").split())


def test_guests_are_asked_in_one_round_trip() -> None:
    read = reader()
    made: Any = Guests()
    read.read_guests((), made)
    assert {(each.where, each.name, each.status) for each in read.commands} == {
        ("guests", name, 1) for name in commands.GUEST
    }
    assert [gap.partition(": ")[2] for gap in read.gaps] == ["guest.unreachable"]


def test_the_commands_only_read() -> None:
    for command in (*commands.HOST.values(), *commands.GUEST.values()):
        assert not {"set", "add", "remove", "start", "stop", "install", "-y", "rm"} & set(command.split())
