"""Gives the links of guests a rate, as a slow switch would, by tc's token bucket."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING

from vsphere_ml.core.errors import ConfigError, NotPossible
from vsphere_ml.lab.guests import hub, machine

if TYPE_CHECKING:
    from pathlib import Path

_RATE = re.compile(r"[1-9]\d*(kbit|mbit|gbit)")
# What a bucket holds goes through at once after a pause, faster than the rate. A millisecond's worth is what the kernel
# needs to keep the rate (iperf3 gets the same 191 and 955 Mbit/s through as with 1 MB), and adds less than 1 % to 4 MiB
# at 200 Mbit/s. tbf cuts larger packets, those of segmentation offload, itself.
_BUCKET_S, _LEAST_BYTES = 1e-3, 32 << 10
_FAR = "-far"  # of the bridge behind an uplink; names of adapters hold 15 letters at most
_UNITS = {"kbit": 1e3, "mbit": 1e6, "gbit": 1e9}


def shape(home: Path, rate: str | None, names: tuple[str, ...] = ()) -> list[str]:
    """Give every adapter of the guests that rate in both directions, or none; return the guests it was done to.

    `names` are VM ids as vCenter has them (`vm-61`); none means all. ConfigError for a rate that tc does not know.
    """
    if rate is not None:
        bits_per_s(rate)
    center = hub.find(home)
    if center is None:
        raise NotPossible("no guests run in this lab", code="lab.no-guests", target=str(home))
    shaped = []
    for at in sorted((home / "vms").iterdir()):
        if (pid := machine.pid(at)) is None or (names and machine.vm_id(at) not in names):
            continue
        for number in range(_adapters(pid)):
            _set(center.pid, f"{at.name}-{number}", rate)
            _set(pid, f"eth{number}", rate)
        _note(at, rate)
        shaped.append(machine.vm_id(at))
    return shaped


def share_uplink(home: Path, rate: str | None, names: tuple[str, ...]) -> list[str]:
    """Put these guests behind one uplink of that rate in each direction, or all back; return the guests it was done to.

    Each of the lab's networks is a bridge, as a switch is. The guests' ports go to a second one, and what leads from
    one to the other has the rate: what these guests and all others have for each other together.
    """
    if rate is not None:
        bits_per_s(rate)
    center = hub.find(home)
    if center is None:
        raise NotPossible("no guests run in this lab", code="lab.no-guests", target=str(home))
    for network in hub.BRIDGES:
        _lay_uplink(center.pid, network, rate)
    moved = []
    for at in sorted((home / "vms").iterdir()):
        if (pid := machine.pid(at)) is None or (rate is not None and machine.vm_id(at) not in names):
            continue
        for number in range(_adapters(pid)):
            bridge = hub.BRIDGES[min(number, 1)] + ("" if rate is None else _FAR)
            _in_network(center.pid, "link", "set", f"{at.name}-{number}", "master", bridge)
        moved.append(machine.vm_id(at))
    if rate is None:
        for network in hub.BRIDGES:
            _take_uplink(center.pid, network)
    return moved


def _lay_uplink(pid: int, network: str, rate: str | None) -> None:
    near, far = f"{network}-up", f"{network}-down"
    if rate is None:
        return
    if not hub.attempt("nsenter", f"--net=/proc/{pid}/ns/net", "ip", "link", "show", near):
        _in_network(pid, "link", "add", network + _FAR, "type", "bridge")
        _in_network(pid, "link", "add", near, "mtu", "9000", "type", "veth", "peer", "name", far, "mtu", "9000")
        _in_network(pid, "link", "set", near, "master", network, "up")
        _in_network(pid, "link", "set", far, "master", network + _FAR, "up")
        _in_network(pid, "link", "set", network + _FAR, "mtu", "9000", "up")
    for end in (near, far):
        _set(pid, end, rate)


def _take_uplink(pid: int, network: str) -> None:
    for device in (f"{network}-up", network + _FAR):
        hub.attempt("nsenter", f"--net=/proc/{pid}/ns/net", "ip", "link", "delete", device)


def _in_network(pid: int, *words: str) -> None:
    hub.run("nsenter", f"--net=/proc/{pid}/ns/net", "ip", *words)


def bits_per_s(rate: str) -> float:
    """Return a rate as a number; ConfigError `lab.bad-rate` for one that tc does not know."""
    if not _RATE.fullmatch(rate):
        raise ConfigError(f"`{rate}` is not a rate", code="lab.bad-rate", target=rate, hint="such as 1gbit or 200mbit")
    return int(rate[:-4]) * _UNITS[rate[-4:]]


def rate(at: Path) -> str | None:
    """Return the rate that a guest's links have, None when they have none."""
    with suppress(OSError):
        return (at / "rate").read_text()
    return None


def _note(at: Path, rate: str | None) -> None:
    if rate is None:
        (at / "rate").unlink(missing_ok=True)
    else:
        (at / "rate").write_text(rate)


def _adapters(pid: int) -> int:
    links = hub.run("nsenter", f"--net=/proc/{pid}/ns/net", "ip", "-o", "link").splitlines()
    return sum(": eth" in link for link in links)


def _set(pid: int, device: str, rate: str | None) -> None:
    tc = ("nsenter", f"--net=/proc/{pid}/ns/net", "tc", "qdisc")
    if rate is None:
        hub.attempt(*tc, "delete", "dev", device, "root")
    else:
        hub.run(*tc, "replace", "dev", device, "root", "tbf", "rate", rate, *_bucket(rate))


def _bucket(rate: str) -> tuple[str, ...]:
    """Return how much goes through at once, and how long a packet may wait."""
    size = max(_LEAST_BYTES, round(_BUCKET_S * bits_per_s(rate) / 8))
    return ("burst", str(size), "latency", "50ms")
