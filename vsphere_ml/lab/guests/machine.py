"""A guest: begun with its VM, reached on its address, ended with its VM. Its disk stays until the VM is destroyed."""

from __future__ import annotations

import ipaddress
import json
import shutil
import socket
import time
from contextlib import suppress
from dataclasses import field
from shlex import quote
from typing import TYPE_CHECKING, Any

from vsphere_ml.core.errors import NotPossible
from vsphere_ml.lab.guests import hub, image
from vsphere_ml.lab.guests.boot import cloudinit, firstboot
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from vsphere_ml.lab.guests.boot.firstboot import LabVm

DISK = "4g"  # of memory at most; what is not written takes none
BOOT_DEADLINE_S = 180.0  # some seconds, and many times that where much else runs
KEYS_DEADLINE_S = 60.0
# Files that the guest sees in /run/vsml-lab.
BOOTED, NO_SSHD, SLOW = "booted", "no-sshd", "slow"
UNTIL_OFF = "faults-until-off"  # what was done to it that its power takes along
ADAPTERS = "guestinfo.lab.adapters"  # PCI identifier and firmware of each fast adapter, with semicolons between them
FIRMWARE = "guestinfo.lab.firmware."  # and an adapter's number: what the guest has set in its firmware
ATS = "guestinfo.lab.ats"  # `on` or `off`: what the lab has made of hosts, NICs and this VM; the guest's lspci shows it


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsReport:
    """What the guest reports to vCenter through VMware Tools."""

    address: str
    hostname: str
    guestinfo: Mapping[str, str] = field(default_factory=dict)


def folder(home: Path, vm_id: str) -> Path:
    """Return where what is known of a guest lies."""
    return home / "vms" / vm_id.replace("vm-", "g")


def vm_id(at: Path) -> str:
    """Return whose guest a folder is about."""
    return at.name.replace("g", "vm-", 1)


def pid(at: Path) -> int | None:
    """Return the pid of the guest's machine, as this machine counts; None when it is off."""
    with suppress(OSError, ValueError):
        found = int((at / "machine.pid").read_text())
        return found if hub.is_ours(found, "machine.sh", at) else None
    return None


def begin(center: hub.Hub, vm: LabVm) -> None:
    """Start the guest, unless it runs. It answers some moments later."""
    at = folder(center.home, vm.id)
    if pid(at) is not None:
        return
    _seed(center, at, vm)
    disk = center.home / "disks" / at.name
    mount = f"mkdir {quote(str(disk))} && mount -t tmpfs -o mode=755,size={DISK} vsml-lab {quote(str(disk))}"
    make = f"mountpoint -q {quote(str(disk))} || {{ {mount}; }}"
    machine = ["unshare", "--mount", "--net", "--uts", "--ipc", "--pid", "--fork", "--kill-child"]
    machine += ["sh", str(hub.HERE / "machine.sh"), str(at), str(disk)]
    machine += [str(image.root_of(center.home, vm.image)), str(center.pid), *_adapters(vm)]
    inside = ["nsenter", "--target", str(center.pid), "--mount", "--net", "--pid"]
    command = f"{make}; exec {' '.join(map(quote, machine))}"
    hub.spawn([*inside, "sh", "-c", command], at / "console.log")


def report(center: hub.Hub, vm: LabVm) -> ToolsReport:
    """Return what the guest says once it can be reached and has reported its host keys; it must have been begun."""
    at = folder(center.home, vm.id)
    hub.await_(lambda: pid(at) is not None, f"the guest of {vm.name} did not start", at / "console.log")
    address = (at / "address").read_text().strip()
    booted = at / "tools" / BOOTED
    late = f"the guest of {vm.name} did not answer"
    hub.await_(lambda: booted.exists() and _answers(address), late, at / "console.log", BOOT_DEADLINE_S)
    deadline = time.monotonic() + KEYS_DEADLINE_S
    while not (answers := _read_tools_values(at)) and time.monotonic() < deadline and (at / "publishes").exists():
        time.sleep(0.005)
    return ToolsReport(address=address, hostname=(at / "hostname").read_text().strip(), guestinfo=answers)


def firmware(center: hub.Hub, vm_id: str) -> dict[str, str]:
    """Return what the guest has set in the firmware of adapters that were handed over whole, by guestinfo key."""
    answers = _read_tools_values(folder(center.home, vm_id))
    return {key: value for key, value in answers.items() if key.startswith(FIRMWARE)}


def end(center: hub.Hub, vm_id: str) -> None:
    """Cut the guest's power. Its disk stays, and so does its address: nobody else shall seem to be the guest."""
    at = folder(center.home, vm_id)
    if (found := pid(at)) is not None:
        hub.kill(found)
    _forget(at)


def _forget(at: Path) -> None:
    """Let go of what ends with the power: the running machine, its links' rate, and what its sshd and pace suffer."""
    for name in ("machine.pid", "rate", UNTIL_OFF, *(f"tools/{each}" for each in (BOOTED, NO_SSHD, SLOW))):
        (at / name).unlink(missing_ok=True)


def destroy(center: hub.Hub, vm_id: str) -> None:
    """Remove the guest and its disk."""
    end(center, vm_id)
    at = folder(center.home, vm_id)
    with suppress(OSError):
        _route(center, "del", (at / "address").read_text().strip())
    disk = center.home / "disks" / at.name
    for command in ("umount", "rmdir"):
        hub.attempt("nsenter", "--target", str(center.pid), "--mount", command, str(disk))
    shutil.rmtree(at, ignore_errors=True)


def _seed(center: hub.Hub, at: Path, vm: LabVm) -> None:
    """Lay down what the guest is to be."""
    (at / "tools").mkdir(parents=True, exist_ok=True, mode=0o755)
    shutil.copy(hub.HERE / "init.sh", at / "init.sh")
    shutil.copytree(hub.HERE / "standins" / "base", at / "programs", dirs_exist_ok=True)
    first_boot = firstboot.read_first_boot(vm, at)
    address = _address(center, at, first_boot.addresses.get(0))
    (at / "address").write_text(f"{address.ip}\n")
    rows = (f"{each.profile or '-'} {each.board} {each.id} {each.name}\n" for each in vm.gpus)
    (at / "tools" / "gpus").write_text("".join(rows))
    (at / "tools" / "nvlinks").write_text(str(0 if _unified_memory(vm) else vm.nvlinks))
    (at / "tools" / "ats").write_text(vm.extra_config.get(ATS, "off"))
    adapters = vm.extra_config.get(ADAPTERS, "")
    (at / "tools" / "adapters").write_text("".join(f"{each}\n" for each in adapters.split(";") if each))
    kinds = (f"eth{number} {nic.get('kind', 'vmxnet3')}\n" for number, nic in enumerate(vm.adapters))
    (at / "tools" / "adapter-kinds").write_text("".join(kinds))
    (at / "hostname").write_text(f"{first_boot.hostname}\n")
    (at / "vm").write_text(vm.name)
    (at / "tools" / "guestinfo").unlink(missing_ok=True)
    _forget(at)
    if any("/scripts/per-boot/" in str(file["path"]) for file in first_boot.userdata.get("write_files") or ()):
        (at / "publishes").touch()
    # Another guest may have had the address a moment ago: neighbours forget its adapter, as when a real guest boots.
    hub.attempt("ip", "neighbour", "delete", str(address.ip), "dev", center.device)
    network = ["echo 1 >/proc/sys/net/ipv4/conf/all/arp_notify"]
    network += [f"ip address replace {address} dev eth0", "ip link set eth0 up"]
    # Whoever has an address in the lab is a neighbour; nobody answers for any other.
    network.append("ip route replace default dev eth0")
    others = ((number, each) for number, each in first_boot.addresses.items() if number)
    network += [f"ip address replace {each} dev eth{number} && ip link set eth{number} up" for number, each in others]
    (at / "tools" / "boot.sh").write_text(cloudinit.boot(first_boot, network))


def _unified_memory(vm: LabVm) -> bool:
    """Return whether unified memory is on for a vGPU, which takes NVLink away (NVIDIA AI Enterprise 8.1, page p2p)."""
    return any(
        key.startswith("pciPassthru") and key.endswith(".cfg.enable_uvm") and value == "1"
        for key, value in vm.extra_config.items()
    )


def _adapters(vm: LabVm) -> list[str]:
    """Return MAC and bridge of each adapter: the first one is for management, the others are fast."""
    macs = [nic.get("mac") or _mac(vm.id, at) for at, nic in enumerate(vm.adapters)]
    return [word for at, mac in enumerate(macs) for word in (mac, "management" if at == 0 else "fabric")]


def _mac(vm_id: str, adapter: int) -> str:
    """Return a MAC of nobody's hardware for an adapter whose own MAC vCenter does not know."""
    number = int("".join(filter(str.isdigit, vm_id)) or 0)
    return f"02:00:{adapter:02x}:{number >> 16 & 255:02x}:{number >> 8 & 255:02x}:{number & 255:02x}"


def _address(center: hub.Hub, at: Path, wanted: str | None) -> ipaddress.IPv4Interface:
    """Return the address the guest is to have, with a way to it laid from this machine."""
    if wanted is None:
        return _lease_address(center, at)
    try:
        address = ipaddress.IPv4Interface(wanted)
    except ValueError as error:
        raise NotPossible(f"lab guests have IPv4 addresses: {error}", code="lab.guest-failed", target=wanted) from error
    if address.ip in center.network:
        return address
    _refuse_foreign(center, address)
    _route(center, "replace", str(address.ip))
    return address


def _lease_address(center: hub.Hub, at: Path) -> ipaddress.IPv4Interface:
    """Return the address the guest had before, or the first free one."""
    taken = {file.read_text().strip() for file in center.home.glob("vms/*/address") if file.parent != at}
    own = (at / "address").read_text().strip() if (at / "address").exists() else ""
    free = (str(each) for number, each in enumerate(center.network.hosts()) if number > 9)  # noqa: PLR2004
    address = own if own and own not in taken else next(each for each in free if each not in taken)
    return ipaddress.IPv4Interface(f"{address}/{center.network.prefixlen}")


def _refuse_foreign(center: hub.Hub, address: ipaddress.IPv4Interface) -> None:
    """Refuse an address that leads to somebody else: this machine itself, its neighbours, another lab's guest."""
    option: Mapping[str, Any] = json.loads(hub.run("ip", "-4", "-j", "route", "get", str(address.ip)))[0]
    if "gateway" not in option and option.get("dev") != center.device:
        raise NotPossible(
            f"{address.ip} leads to {option.get('dev')} on this machine, so no lab guest can have it",
            code="lab.guest-failed",
            target=str(address.ip),
            hint="give the nodes addresses of a network this machine has no part in",
        )


def _route(center: hub.Hub, act: str, address: str) -> None:
    """Lay or take up the way to a guest's address; those of the lab's own network need none."""
    if ipaddress.IPv4Address(address) not in center.network:
        option = ("ip", "route", act, f"{address}/32", "dev", center.device, "src", str(center.operator))
        hub.attempt(*option) if act == "del" else hub.run(*option)


def _answers(address: str) -> bool:
    """Return whether sshd greets there."""
    with suppress(OSError), socket.create_connection((address, 22), timeout=1) as connection:
        connection.settimeout(1)
        return connection.recv(4) == b"SSH-"
    return False


def _read_tools_values(at: Path) -> dict[str, str]:
    """Return what the guest has set through VMware Tools."""
    with suppress(OSError):
        lines = (at / "tools" / "guestinfo").read_text().splitlines()
        pairs = (line.partition(" ") for line in lines)
        return {key: value for key, _, value in pairs if key}
    return {}
