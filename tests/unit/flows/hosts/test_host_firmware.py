"""A function that is passed through whole: its firmware is asked and set in the guest that has it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar, cast

from tests.fakes.pictures import port, quad_8u3, r750xa
from tests.fakes.requirements import cluster, node
from tests.unit.flows.hosts_rig import Rig, existing
from vsphere_ml.core.errors import GuestError, VsmlError
from vsphere_ml.core.model.device_kinds import NicKind
from vsphere_ml.core.model.guest import CommandAnswer
from vsphere_ml.core.model.host_settings import AccessMethod, SettingKind, SettingState
from vsphere_ml.core.model.spec import Address, NicRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from vsphere_ml.core.model.guest import Shell
    from vsphere_ml.core.ports.vcenter import GuestPlace

T = TypeVar("T")
ROW = "Configurations:    Default    Current    Next Boot\n        ATS_ENABLED    False(0)    {}    {}\n"


@dataclass(slots=True)
class Guest:
    """A guest with the port 0000:3d:00.0 of its host, at another address; it answers while its VM runs."""

    rig: Rig
    functions: int = 1
    commands: list[str] = field(default_factory=list)
    name: str = "node-1"
    booting: bool = False

    def vouched(self, _place: GuestPlace) -> tuple[str, ...]:
        return ("ssh-ed25519 KEY",)

    def reach(self, _places: Sequence[GuestPlace], deadline_s: float) -> Mapping[str, VsmlError]:
        self.booting = self.booting and deadline_s == 0
        return {}

    def log(self, _name: str) -> str:
        return ""

    def each(
        self,
        places: Sequence[GuestPlace],
        work: Callable[[Shell], T],
        ended: Callable[[str, T | VsmlError], None] = lambda _name, _outcome: None,
    ) -> Mapping[str, T | VsmlError]:
        outcome: T | VsmlError
        try:
            outcome = work(cast("Shell", self))
        except VsmlError as error:
            outcome = error
        for place in places:
            ended(place.name, outcome)
        return {place.name: outcome for place in places}

    def ask(self, commands: Mapping[str, str]) -> Mapping[str, CommandAnswer]:
        return {name: self.run(command) for name, command in commands.items()}

    def run(self, command: str, *, timeout_s: float = 0.0) -> CommandAnswer:
        assert timeout_s >= 0
        if "node-1" not in self.rig.running():
            self.booting = True  # as soon as it runs again
        if self.booting or "node-1" not in self.rig.running():
            raise GuestError("node-1 cannot be reached", code="guest.unreachable", target="node-1")
        self.commands.append(command)
        function = next(iter(self.rig.esx(0).functions.values()))
        if command.startswith("lspci"):
            return CommandAnswer(0, "".join(f"0000:1{n}:00.0 0200: 15b3:101d\n" for n in range(self.functions)))
        if command.endswith("-d 0000:10:00.0 -y set ATS_ENABLED=true"):
            function.ats[0] = True
            return CommandAnswer(0, "Applying... Done!\n")
        assert command.endswith("-d 0000:10:00.0 -e query"), command
        values = (f"{value}({int(value)})" for value in (function.ats[1], function.ats[0]))
        return CommandAnswer(0, ROW.format(*values))


def rig(functions: int = 1) -> Rig:
    """Return a node that has a whole ConnectX port of its host."""
    host = r750xa(1)
    host = replace(
        host, nics=(port("0000:3d:00.0", "vmnic4", sriov=False, passthrough=True), *host.nics[1:]), groups=()
    )
    picture = replace(quad_8u3(hosts=1, taken=False), hosts=(host,))
    wanted = node("node-1", nic=NicRequest(kind=NicKind.PASSTHROUGH), address=Address(address="10.0.0.11/24"))
    made = existing(1, picture, cluster((wanted,)))
    made.guests = Guest(made, functions)
    return made


def test_the_guest_is_asked_before_it_stops_and_again_when_it_runs() -> None:
    made = rig()
    report = made.run()
    assert report.error is None
    assert isinstance(made.guests, Guest)
    assert not made.guests.booting  # it was waited for
    assert [command for _, command in made.hosts.commands] == []  # the host's shell does not see the function
    kinds = made.done()
    assert kinds[:3] == ["WriteRecord", "NoteRunning", "ShutDown"]
    assert any(" set " in command for command in made.guests.commands)
    (fact,) = [each for each in report.facts[0].facts if each.part is SettingKind.FIRMWARE]
    assert (fact.access, fact.state, fact.guest) == (AccessMethod.GUEST, SettingState.EFFECTIVE, "node-1")


def test_passthrough_is_wanted_where_a_node_has_a_whole_function() -> None:
    made = rig()
    parts = {fact.part for fact in made.run(dry_run=True).facts[0].facts}
    assert SettingKind.PASSTHROUGH in parts
    assert SettingKind.SRIOV not in parts


def test_of_several_functions_nobody_guesses() -> None:
    made = rig(functions=2)
    report = made.run()
    (fact,) = [each for each in report.facts[0].facts if each.part is SettingKind.FIRMWARE]
    assert fact.state is SettingState.UNKNOWN
    assert "2 whole ConnectX functions" in fact.why
    assert made.hosts.changes == []


def test_a_guest_that_is_off_is_said() -> None:
    made = rig()
    made.hosts._power(next(vm for vm in made.site.inventory.vms if vm.name == "node-1"), on=False)
    report = made.run(dry_run=True)
    (fact,) = [each for each in report.facts[0].facts if each.part is SettingKind.FIRMWARE]
    assert (fact.state, "powered off" in fact.why) == (SettingState.UNKNOWN, True)
