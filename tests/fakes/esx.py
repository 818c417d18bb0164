"""An ESXi host in memory: kernel setting, graphics, firmware and functions, each with a next boot and a now."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from vsphere_ml.core.esx import Connection

if TYPE_CHECKING:
    from vsphere_ml.core.inventory import Host, PciAddress


@dataclass(slots=True)
class Function:
    """A port: [next boot, now] of all that it has."""

    vfs: list[int]
    passthrough: list[bool]
    ats: list[bool]


@dataclass(slots=True)
class FakeEsx:
    """One host. `fails` names what it does wrong."""

    host: Host
    kernel: list[str] | None  # next boot, now; None: this ESXi has no such setting
    functions: dict[PciAddress, Function]
    esxcli: bool = True
    option: bool = True
    graphics: list[str] = field(default_factory=lambda: ["sharedDirect", "sharedDirect"])
    gpus: dict[str, list[str]] = field(default_factory=dict)  # graphics types of GPUs that have one of their own
    connection: Connection = Connection.CONNECTED
    maintenance: bool = False
    boots: int = 1
    ssh: bool = True
    mft: bool = True
    record: str = ""
    fails: set[str] = field(default_factory=set)
    tools_missing: set[str] = field(default_factory=set)
    agents: set[str] = field(default_factory=set)
    addresses: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.host.name

    def boot(self) -> None:
        """Put in force what was configured."""
        self.boots += 1
        if self.kernel is not None:
            self.kernel[1] = self.kernel[0]
        self.graphics[1] = self.graphics[0]
        for gpu in self.gpus.values():
            gpu[1] = gpu[0]
        for function in self.functions.values():
            function.vfs[1] = function.vfs[0]
            function.passthrough[1] = function.passthrough[0]
            function.ats[1] = function.ats[0]
        self.connection = Connection.CONNECTED


def esx(host: Host, **knobs: object) -> FakeEsx:
    """Return the host as its ESXi version ships it: the kernel's setting by the published lists, no ATS in firmware."""
    version = tuple(int(part) for part in host.version.split("."))
    known = {True: "TRUE", False: "FALSE"}[version >= (7, 0, 3)] if version >= (7, 0, 2) else None
    plain = FakeEsx(
        host=host,
        kernel=None if known is None else [known, known],
        option=version >= (7, 0, 3),
        functions={
            port.address: Function([port.vfs, port.vfs], [port.passthrough, port.passthrough], [False, False])
            for port in host.nics
        },
    )
    return replace(plain, **knobs)  # type: ignore[arg-type]
