"""Ports of RDMA devices as a guest's kernel lists them, and those among them that RoCE goes by.

The files are those of the kernel's Documentation/ABI/stable/sysfs-class-infiniband. Which GID of a port is RoCE v2 over
IPv4 cannot be known by its index: 3 is only usual.
"""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING

from vsphere_ml.core.errors import NotPossible
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from vsphere_ml.bench.model.transports import Transport

# An empty entry of the GID table cannot be read (EINVAL), and is left out by that.
PROBE = """\
for port in /sys/class/infiniband/*/ports/*; do
    [ -e "$port/state" ] || continue
    device=${port%/ports/*} driver=$(readlink -f "${port%/ports/*}/device/driver") device=${device##*/}
    echo "port|$device|${port##*/}|$(cat "$port/state")|$(cat "$port/rate")|${driver##*/}"
    for kind in "$port"/gid_attrs/types/*; do
        grep -qs 'RoCE v2' "$kind" || continue
        index=${kind##*/}
        echo "gid|$index|$(cat "$port/gids/$index")|$(cat "$port/gid_attrs/ndevs/$index")"
    done
done
"""
PVRDMA_DRIVER = "vmw_pvrdma"  # whatever name udev gives the device
_RATE = re.compile(r"([\d.]+) Gb/sec")
_IPV4 = "0000:0000:0000:0000:0000:ffff:"


@dataclass(frozen=True, slots=True, kw_only=True)
class PortGid:
    """A RoCE v2 GID over IPv4, and the network interface whose address it is."""

    index: int
    address: str
    interface: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Port:
    """A port of an RDMA device.

    `line_rate_bits_per_s` is what the link runs at now; None of a PVRDMA adapter, whose own rate is not the wire's.
    """

    device: str
    number: int = 1
    active: bool = True
    line_rate_bits_per_s: float | None = None
    gids: tuple[PortGid, ...] = ()
    paravirtual: bool = False  # of a PVRDMA adapter

    @property
    def name(self) -> str:
        return f"{self.device}:{self.number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rail:
    """A port that RoCE goes by, and the GID to name: the one of the lowest index."""

    port: Port
    gid: PortGid


def read(text: str) -> tuple[Port, ...]:
    """Return what `PROBE` printed, in the order of devices."""
    ports: list[tuple[list[str], list[PortGid]]] = []
    for line in text.splitlines():
        kind, *cells = line.split("|")
        if kind == "port" and len(cells) == 5:  # noqa: PLR2004 - the fields of the probe
            ports.append((cells, []))
        elif kind == "gid" and ports and (gid := _gid(cells)) is not None:
            ports[-1][1].append(gid)
    return tuple(_port(cells, gids) for cells, gids in ports)


def ports_of_device(ports: Sequence[Port], device: str) -> tuple[Port, ...]:
    """Return the ports of this device; all when it is empty."""
    return tuple(port for port in ports if device in {"", port.device})


def ports_of_transport(ports: Sequence[Port], transport: Transport) -> tuple[Port, ...]:
    """Return the ports that this transport may go by: those of PVRDMA adapters, or those of NICs' functions."""
    return tuple(port for port in ports if port.paravirtual == transport.spec.paravirtual)


def rails(ports: Sequence[Port]) -> tuple[Rail, ...]:
    """Return the ports that RoCE can go by: active, with an IPv4 address."""
    return tuple(
        Rail(port=port, gid=min(port.gids, key=lambda gid: gid.index)) for port in ports if port.active and port.gids
    )


def nccl_settings(of: Mapping[str, Sequence[Rail]], transport: Transport) -> Mapping[str, Mapping[str, str]]:
    """Return NCCL's settings for the ports of each node.

    It takes one GID index for all ports of a node. Without one each rank finds the RoCE v2 GID of each of its ports
    itself, from NCCL 2.21 on (net_ib/connect.cc: IB_GID_INDEX is -1, IB_ROCE_VERSION_NUM is 2). NotPossible
    `bench.no-rdma` when a node has no such port.
    """
    _check_rails(of, transport)
    return {node: _nccl_settings(each) for node, each in of.items()}


def _nccl_settings(own: Sequence[Rail]) -> dict[str, str]:
    indexes = {rail.gid.index for rail in own}
    ports = {"NCCL_IB_HCA": f"={','.join(rail.port.name for rail in own)}"}
    return ports | ({"NCCL_IB_GID_INDEX": str(indexes.pop())} if len(indexes) == 1 else {})


def ucx_settings(of: Mapping[str, Sequence[Rail]], transport: Transport) -> Mapping[str, Mapping[str, str]]:
    """Return UCX's settings for the ports of each node; NotPossible `bench.no-rdma` when a node has no such port.

    Like NCCL it takes one GID index for all ports, and looks for one itself where none is named.
    """
    _check_rails(of, transport)
    return {node: _ucx_settings(each) for node, each in of.items()}


def _ucx_settings(own: Sequence[Rail]) -> dict[str, str]:
    indexes = {rail.gid.index for rail in own}
    ports = {"UCX_NET_DEVICES": ",".join(rail.port.name for rail in own)}
    return ports | ({"UCX_IB_GID_INDEX": str(indexes.pop())} if len(indexes) == 1 else {})


def _check_rails(of: Mapping[str, Sequence[Rail]], transport: Transport) -> None:
    if missing := [node for node, each in of.items() if not each]:
        raise none_on(missing, transport)


def none_on(nodes: Sequence[str], transport: Transport) -> NotPossible:
    """Return the error for nodes without a port that the transport could go by."""
    whose = " of a PVRDMA adapter" if transport.spec.paravirtual else ""
    return NotPossible(
        f"{', '.join(nodes)}: no active RDMA port{whose} with a RoCE v2 GID of an IPv4 address",
        code="bench.no-rdma",
        target=nodes[0],
        hint='`vsml configure` with the playbook "roce", `vsml verify` for what is missing; --transport tcp needs none',
    )


def _port(cells: list[str], gids: list[PortGid]) -> Port:
    device, number, state, rate, driver = cells
    paravirtual = driver == PVRDMA_DRIVER
    speed = _RATE.search(rate)
    return Port(
        device=device,
        number=int(number),
        active="ACTIVE" in state,
        line_rate_bits_per_s=float(speed[1]) * 1e9 if speed and not paravirtual else None,
        gids=tuple(gids),
        paravirtual=paravirtual,
    )


def _gid(cells: list[str]) -> PortGid | None:
    index, value, interface = cells
    if not value.startswith(_IPV4):
        return None
    number = int(value.removeprefix(_IPV4).replace(":", ""), 16)
    return PortGid(index=int(index), address=str(ipaddress.IPv4Address(number)), interface=interface)


def interfaces(ports: Sequence[Port]) -> Iterator[str]:
    """Yield the network interfaces that belong to RDMA ports."""
    yield from dict.fromkeys(gid.interface for port in ports for gid in port.gids)
