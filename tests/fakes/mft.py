"""mst and mlxconfig of an ESXi host in memory. What they print is written by hand in the formats of MFT's manual."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.core.model.guest import CommandAnswer

if TYPE_CHECKING:
    from tests.fakes.esx import FakeEsx, Function
    from vsphere_ml.core.model.inventory import PciAddress

_ROW = "{mark}       {name:<36}{default:<16}{now:<16}{next}\n"


def run(machine: FakeEsx, command: str) -> CommandAnswer:
    """Return what the host's shell says to a command of MFT's; one it has no meaning for is a failure of the test."""
    words = command.split()
    if not machine.mft:
        return CommandAnswer(127, "", f"sh: {words[0]}: not found\n")
    match [words[0].rpartition("/")[2], *words[1:]]:
        case ["mst", "start"]:
            return CommandAnswer(0, "Loading MST device driver: done\n")
        case ["mst", "status", "-vv"]:
            rows = [
                f"ConnectX6DX(rev:0)  {name}  {address[5:]}  net-{nic}  0\n" for name, address, nic in _mst(machine)
            ]
            return CommandAnswer(0, "PCI devices:\nDEVICE_TYPE  MST  PCI  RDMA  NET  NUMA\n" + "".join(rows))
        case ["mlxconfig", "-d", device, "-e", "query"]:
            return _query(machine, device)
        case ["mlxconfig", "-d", device, "-y", "set", assignment]:
            return _set(machine, device, assignment)
    raise AssertionError(f"this shell has no meaning for {words}")


def _mst(machine: FakeEsx) -> list[tuple[str, PciAddress, str | None]]:
    return [(f"mt4125_pciconf{number}", port.address, port.pnic) for number, port in enumerate(machine.host.nics)]


def _port(machine: FakeEsx, device: str) -> Function | None:
    return next((machine.functions[address] for name, address, _ in _mst(machine) if name == device), None)


def _query(machine: FakeEsx, device: str) -> CommandAnswer:
    port = _port(machine, device)
    if port is None:
        return CommandAnswer(3, "", "-E- Failed to open the device\n")
    on, count = port.sriov
    rows = [_row("SRIOV_EN", now=on, next_boot=on)]
    rows.append(_ROW.format(mark=" ", name="NUM_OF_VFS", default=8, now=count, next=count))
    if "no setting" not in machine.fails:
        rows.append(_row("ATS_ENABLED", now=port.ats[1], next_boot=port.ats[0]))
    head = f"\nDevice #1:\n----------\n\nDevice type:    ConnectX6DX\nDevice:         {device}\n\n"
    titles = "Configurations:                              Default         Current         Next Boot\n"
    return CommandAnswer(0, head + titles + "".join(rows))


def _row(name: str, *, now: bool, next_boot: bool) -> str:
    truth = {True: "True(1)", False: "False(0)"}
    mark = "*" if now != next_boot else " "
    return _ROW.format(mark=mark, name=name, default=truth[False], now=truth[now], next=truth[next_boot])


def _set(machine: FakeEsx, device: str, assignment: str) -> CommandAnswer:
    port, (name, _, value) = _port(machine, device), assignment.partition("=")
    if port is None or name != "ATS_ENABLED" or "firmware" in machine.fails:
        return CommandAnswer(3, "", "-E- Failed to set configuration: Device doesn't support this operation\n")
    port.ats[0] = value == "true"
    return CommandAnswer(0, "Applying... Done!\n-I- Please reboot machine to load new configurations.\n")
