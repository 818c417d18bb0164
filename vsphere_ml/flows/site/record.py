"""`vsml doctor --record`: asks a site all that vsml ever reads of one. Writes nothing, and starts no service."""

from __future__ import annotations

from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from vsphere_ml.core.errors import VsmlError
from vsphere_ml.core.ports.vcenter import Scope
from vsphere_ml.core.site_record import commands
from vsphere_ml.core.site_record.exchanges import CommandExchange
from vsphere_ml.core.tools import mft
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from vsphere_ml.core.model.guest import CommandAnswer, Shell
    from vsphere_ml.core.model.inventory import Inventory
    from vsphere_ml.core.ports.esxi import Hosts, HostShells
    from vsphere_ml.core.ports.vcenter import GuestPlace, Guests, VCenter
    from vsphere_ml.core.site_record.redact_text import TextRedactor

T = TypeVar("T")
_COMMAND_S = 60.0


@dataclass(slots=True)
class SiteReader:
    """Asks, and keeps what commands printed; `gaps` says what could not be asked, and by which error."""

    redactor: TextRedactor
    commands: list[CommandExchange] = field(default_factory=list)
    gaps: list[str] = field(default_factory=list)

    def read_vcenter(self, vcenter: VCenter, hosts: Hosts, datacenter: str | None) -> Inventory | None:
        """Return the inventory, all of it and the state of every host having been read; None when it cannot be."""
        scope = Scope(datacenter=datacenter, direct_path=True, pvrdma=True, roce=True, customizations=True, tasks=True)
        inventory = self._try("inventory", lambda: vcenter.read_site(scope))
        if inventory is not None:
            self._try("vms", lambda: vcenter.read_site(Scope(datacenter=datacenter, vms=_names(inventory))))
            self._try("host states", lambda: hosts.see([host.ref for host in inventory.hosts]))
        return inventory

    def read_hosts(self, names: Collection[str], shells: HostShells) -> None:
        """Run the commands of hosts on each; one whose SSH service is stopped is a gap."""
        for name in names:
            self._try(f"host {self._pseudonym(name)}", partial(self._run_on_host, name, shells))

    def read_guests(self, places: Sequence[GuestPlace], guests: Guests) -> None:
        """Ask the commands of guests of each, in one round trip a guest."""

        def ask(shell: Shell) -> Mapping[str, CommandAnswer]:
            return shell.ask(commands.GUEST)

        for name, answers in guests.each(places, ask).items():
            if isinstance(answers, VsmlError):
                self.gaps.append(f"guest {self._pseudonym(name)}: {answers.code}")
                continue
            for row, answer in answers.items():
                self._keep("guests", name, row, commands.GUEST[row], answer)

    def _run_on_host(self, name: str, shells: HostShells) -> None:
        listed = ""
        for row, command in commands.HOST.items():
            answer = shells.run(name, command, _COMMAND_S)
            self._keep("hosts", name, row, command, answer)
            listed = answer.out if row == commands.DEVICES else listed
        for number, device in enumerate(mft.devices(listed), 1):
            command = mft.query(device.name)
            self._keep("hosts", name, f"firmware-{number}", command, shells.run(name, command, _COMMAND_S))

    def _keep(self, where: str, machine: str, row: str, command: str, answer: CommandAnswer) -> None:
        self.commands.append(
            CommandExchange(
                where=where,
                machine=self._pseudonym(machine),
                name=row,
                command=command,
                status=answer.status,
                out=self.redactor.redact(answer.out),
                err=self.redactor.redact(answer.err),
            )
        )

    def _pseudonym(self, name: str) -> str:
        return self.redactor.pseudonyms.replace(name)

    def _try(self, part: str, read: Callable[[], T]) -> T | None:
        try:
            return read()
        except VsmlError as error:
            self.gaps.append(f"{part}: {error.code}")
            return None


def _names(inventory: Inventory) -> frozenset[str]:
    return frozenset(vm.name for vm in inventory.vms)
