"""Whether packets of full size get from each port to its counterparts in one piece.

A switch with a smaller MTU drops them, and large messages of RDMA with them, while everything small goes through.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.bench.probe.rdma import rails
from vsphere_ml.core.errors import BenchError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from vsphere_ml.bench.probe.rdma import Rail
    from vsphere_ml.bench.probe.survey import Surveyed

_HEADERS = 28  # ping's -s is without the 20 bytes of IPv4 and the 8 of ICMP
# All at once; what gets no answer to three packets is printed.
_PING = """\
command -v ping >/dev/null || exit 0
while read -r interface address size; do
    { ping -q -c 3 -i 0.3 -W 1 -M do -s "$size" -I "$interface" "$address" >/dev/null 2>&1 ||
        echo "$interface $address"; } &
done <<'END'
%s
END
wait
"""
TIMEOUT_S = 60


def commands(surveyed: Sequence[Surveyed]) -> dict[str, str]:
    """Return by node what pings the ports of all others from its own, the first from the first and so on."""
    lists = {each.node: "\n".join(_targets(each, surveyed)) for each in surveyed}
    return {node: _PING % lines for node, lines in lists.items() if lines}


def _targets(one: Surveyed, surveyed: Sequence[Surveyed]) -> Iterator[str]:
    for other in surveyed:
        for mine, theirs in zip(_rails(one), _rails(other), strict=False) if other is not one else ():
            interface = mine.gid.interface
            if (mtu := one.mtu.get(interface)) is not None:
                yield f"{interface} {theirs.gid.address} {mtu - _HEADERS}"


def _rails(each: Surveyed) -> tuple[Rail, ...]:
    return rails(each.ports)


def check(surveyed: Sequence[Surveyed], printed: Mapping[str, str]) -> None:
    """Raise BenchError `bench.packet-size` that names every pair between which no packet of full size gets through."""
    owner = {rail.gid.address: each.node for each in surveyed for rail in _rails(each)}
    mtu = {each.node: each.mtu for each in surveyed}
    lost = [(node, *line.split()) for node, text in sorted(printed.items()) for line in text.splitlines()]
    if not lost:
        return
    node, interface, address = lost[0]
    raise BenchError(
        f"packets of full size are lost between {len(lost)} pairs of ports: {mtu[node][interface]} bytes from {node} "
        f"({interface}) to {owner[address]} ({address})",
        code="bench.packet-size",
        target=f"{node} to {owner[address]}",
        details=tuple(f"{one} ({name}) to {owner[other]} ({other})" for one, name, other in lost),
        hint=f"the MTU is smaller between them: `vsml ssh {owner[address]} -- ip link`; `vsml plan` tells that of the "
        "distributed switch; look at the physical switches",
    )
