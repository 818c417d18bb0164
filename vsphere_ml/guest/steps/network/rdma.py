"""Finding the RoCE interface of a guest, its RDMA device, and the GIDs of that."""

from __future__ import annotations

import re
from dataclasses import replace
from ipaddress import IPv6Address
from typing import TYPE_CHECKING

from vsphere_ml.core import json_text
from vsphere_ml.core.units import parse_integer
from vsphere_ml.guest.steps.system.shell import q
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from vsphere_ml.core.model.guest import CommandAnswer, GuestFacts

RECORD = "/etc/vsml/roce.env"
_MAPPED = re.compile(r"(?:0000:){5}ffff:|::ffff:")  # a GID that holds an IPv4 address


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestGid:
    """One entry of an RDMA device's table of addresses."""

    device: str
    index: int
    interface: str
    address: str  # the IPv4 address it stands for

    @property
    def record(self) -> str:
        """NCCL's and perftest's settings of later on, as a file of variables."""
        return (
            f"VSML_ROCE_DEVICE={self.device}\nVSML_ROCE_GID_INDEX={self.index}\nVSML_ROCE_INTERFACE={self.interface}\n"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RdmaLink:
    """A network interface as `ip` shows it; without a name there is none."""

    name: str = ""
    mtu: int = 0
    addresses: tuple[str, ...] = ()  # IPv4, with the prefix length


def each(facts: GuestFacts) -> tuple[GuestFacts, ...]:
    """Return the facts as they are of each of the guest's fast NICs alone."""
    others = enumerate(facts.more_roce_macs)
    return (facts, *(_facts_of_port(facts, at, mac) for at, mac in others))


def _facts_of_port(facts: GuestFacts, at: int, mac: str | None) -> GuestFacts:
    peers = tuple(
        replace(peer, roce_address=next(iter(peer.more_roce_addresses[at : at + 1]), None)) for peer in facts.peers
    )
    return replace(facts, roce_mac=mac, roce_number=at + 2, more_roce_macs=(), peers=peers)


def interface(facts: GuestFacts) -> str:
    """Ask for a RoCE interface's name: by the MAC that vCenter knows, else by its place among those of mlx5_core."""
    if facts.roce_mac:
        mac = q(facts.roce_mac.lower())
        # A bond or a VLAN on top has the same MAC and comes later.
        pick = 'tolower($0) ~ mac {sub(/:$/, "", $2); sub(/@.*/, "", $2); print $2; exit}'
        return f"ip -o link show | awk -v mac={mac} '{pick}'"
    if facts.nic.spec.paravirtual:
        # Its network device is function 0 of the same slot (Linux, vmw_pvrdma/pvrdma_main.c).
        return (
            "for each in /sys/bus/pci/drivers/vmw_pvrdma/*:*; do each=${each##*/};"
            " ls /sys/bus/pci/devices/${each%.*}.0/net; done"
            f" | sed -n {facts.roce_number}p"
        )
    if facts.roce_number > 1:
        return (
            "for each in /sys/class/net/*/device/driver; do case $(readlink $each) in"
            " */mlx5_core) each=${each%/device/driver}; echo ${each##*/};; esac; done"
            f" | sed -n {facts.roce_number}p"
        )
    return (
        "for each in /sys/class/net/*/device/driver; do case $(readlink $each) in"
        " */mlx5_core) each=${each%/device/driver}; echo ${each##*/}; break;; esac; done"
    )


def addresses(facts: GuestFacts) -> str:
    """Ask for MTU and addresses of that interface."""
    return f'ip -j addr show dev "$({interface(facts)})"'


def link(answer: CommandAnswer) -> RdmaLink:
    """Return what the answer to `addresses` shows."""
    try:
        read = json_text.parse(answer.text)[0]
        found = tuple(f"{each['local']}/{each['prefixlen']}" for each in read["addr_info"] if each["family"] == "inet")
        return RdmaLink(name=read["ifname"], mtu=read["mtu"], addresses=found)
    except (ValueError, LookupError, TypeError):
        return RdmaLink()


def gids(facts: GuestFacts) -> str:
    """Ask for the RoCE GIDs of that interface, one a line: device, index, GID, version, interface."""
    sysfs = (
        'for net in /sys/class/infiniband/*/ports/1/gid_attrs/ndevs/*; do test "$(cat $net 2>/dev/null)" = "$nic" || '
        "continue; port=${net%/gid_attrs/*}; device=${port%/ports/*}; at=${net##*/}; "
        "echo ${device##*/} $at $(cat $port/gids/$at)"
        ' "$(cat $port/gid_attrs/types/$at 2>/dev/null)" $nic; done'
    )
    read = f"if test -e /sys/class/infiniband; then {sysfs}; else show_gids; fi"
    return f'nic="$({interface(facts)})"; test -n "$nic" && {read}'


def own_address(facts: GuestFacts) -> str | None:
    """Return the guest's RoCE address, perhaps with a prefix length; None where DHCP gives one."""
    return next((peer.roce_address for peer in facts.peers if peer.name == facts.name), None)


def best(answer: CommandAnswer, facts: GuestFacts) -> GuestGid | None:
    """Return the GID of RoCE v2 for the guest's RoCE address; the first one of any IPv4 address else, or None."""
    found = [gid for gid in map(_gid, answer.out.splitlines()) if gid is not None]
    own = (own_address(facts) or "").partition("/")[0]
    return next((gid for gid in found if gid.address == own), found[0] if found else None)


def _gid(line: str) -> GuestGid | None:
    """Read a line of ours, `mlx5_0 3 GID RoCE v2 ens2`, or of show_gids, `mlx5_0 1 3 GID 10.0.0.1 v2 ens2`."""
    words = line.split()
    at = next((at for at, word in enumerate(words) if _MAPPED.match(word)), None)
    index = parse_integer(words[at - 1]) if at else None
    if at is None or index is None or "v2" not in words[at:]:
        return None
    try:
        address = str(IPv6Address(words[at]).ipv4_mapped)
    except ValueError:
        return None
    return GuestGid(device=words[0], index=index, interface=words[-1], address=address)
