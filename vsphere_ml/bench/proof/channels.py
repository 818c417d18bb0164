"""The channels that NCCL logged: which host logged each, what carried it, and by which NIC.

NCCL's line is that of src/transport/net.cc, p2p.cc and shm.cc, read in every release from 2.3 to 2.30:
`node-1:41:77 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0/GDRDMA`. Up to 2.6 it begins with `Ring`; up
to 2.4 the ranks of a network's line have no brackets; up to 2.3 the receiving end alone logs it, and no side. A network
plugin puts its own name there: that of HPC-X, in NVIDIA's images, is IBext, IBext_v8 and so on, and speaks verbs as
NCCL's own IB does. UCX and others may take RDMA or TCP, and NCCL's line does not say which.

A rank's number is that in its communicator, of which a job can have several. So a line counts for the host that logged
it, and the other end's host is found by the communicators that NCCL logged, or by the line that the other end logged.
"""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING

from vsphere_ml.bench.model.record import Path
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

SEND, RECEIVE = "send", "receive"
NET = "NET/"
_GLUED = re.compile(r"/\d+$")  # a device's number, after which the digits that begin a host's name cannot be recognised
_HEAD = re.compile(
    r"(?:(?<![\w./-])|(?<=GDRDMA)|(?<=Shared)|(?<=/\d))(?P<host>[\w.-]{1,253}):(?P<pid>\d+):\d+ +"
    r"\[ *-?\d+\] +(?:\d+\.\d+ \S+ )?NCCL (?:INFO|TRACE|WARN)\b"
)
_BEGINS = re.compile(r"(?=(?:Channel|Ring) \d+(?:/\d+)? : )")  # a launcher may run the lines of several ranks together
_CHANNEL = re.compile(
    r"(?:Channel|Ring) (?P<channel>\d+)(?:/(?P<connection>\d+))? : "
    r"(?P<sender>\d+)(?:\[\w*\])? -> (?P<receiver>\d+)(?:\[\w*\])?"
    r"(?: \[(?P<side>send|receive)\])? via (?P<via>\S.*)"
)
_VIA_NET = re.compile(r"NET/(?P<name>.+?)/(?P<device>\d+)(?:\(\d+\))?(?P<how>\S*)")
_NET_LINE = re.compile(r"(?:/GDRDMA(?:\(PCI\))?|/Shared)*")
_VERBS = re.compile(r"IB(ext\w*)?")
# HPC-X's plugin goes by this name until it has chosen its way, which it logs in a line of its own: NCCL's adaptors for
# older plugins keep the first name (nccl-rdma-sharp-plugins' p2p_plugin.c; ncclNet_v6_as_v8 and others in NCCL).
_UNDECIDED = "NCCL RDMA Plugin"
_CHOSEN = re.compile(r"P2P plugin(?: v\d+)? (?P<name>\S+)")
_SHARED_MEMORY = "direct shared memory"  # NCCL up to 2.12; SHM/direct since
_COMMUNICATOR = re.compile(r"\bcomm (?P<pointer>0x[0-9a-f]+) rank (?P<rank>\d+) n[rR]anks (?P<size>\d+)\b")
_COMMUNICATOR_ID = re.compile(r"\bcommId (?P<id>0x[0-9a-f]+)")
# src/transport/net_ib.cc; 2.20 to 2.22 list merged ports in braces, later ones log each by a line of its own.
_USING = re.compile(r"NET/IB\w* : Using ")
_PORT = re.compile(r"\[(?P<index>\d+)\](?:=\{(?P<merged>[^}]*)\}|(?P<port>[\w.+-]+:\d+(?::\d*){0,2}/\w+))")
_MERGED_PORT = re.compile(r"[\w.-]+:\d+/\w+")
# NCCL calls any Ethernet port RoCE (NCCL_IB_LLSTR), also of a device that speaks iWARP alone: i40iw, cxgb4, siw.
_IWARP = re.compile(r"(?:^|\+)(?:i40iw|cxgb|siw)")
# NCCL tries a plugin, its own IB and sockets, in this order, until one has a device (initNet, ncclNetInit).
_WITHOUT_RDMA = re.compile(r"NET/IB : No device found|Using network Socket\b")
_NETWORK = re.compile(r"Using network (?!Socket\b)\S|NET/(?!IB|Socket)\S+ .*(?:Using|Selected)|P2P plugin")
_VIRTUAL = re.compile(r"Made virtual device \[(?P<index>\d+)\] name=(?P<name>\S+) .*\bndevs=(?P<ports>\d+)")
# What can carry collectives between nodes beside these channels, or instead of them.
_ALTERNATIVES = (
    (re.compile(r"via (COLLNET/[^/\s]+)"), "{} may reduce in the network instead"),
    (re.compile(r"(MNNVL) 1\b|via P2P/(MNNVL)"), "NVLink between nodes ({}) may carry it instead"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Said:
    """One line of NCCL's, and the process that logged it; a launcher may have put several into one line."""

    host: str  # empty where the line does not name it
    pid: str
    text: str
    cut: bool = False  # another process's line begins where this one would go on


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """A channel's line and its match."""

    said: _Said
    match: re.Match[str]

    @property
    def key(self) -> tuple[str, ...]:
        return tuple(self.match[name] or "" for name in ("channel", "connection", "sender", "receiver"))

    @property
    def side(self) -> str:
        """The end that logged it: of a network's line without a side the receiving one, else the sending one."""
        return self.match["side"] or (RECEIVE if self.match["via"].startswith(NET) else SEND)

    @property
    def cut(self) -> bool:
        """Whether another process's line begins where `/GDRDMA` would stand."""
        net = _VIA_NET.match(self.match["via"])
        if net is None or "/GDRDMA" in net["how"]:
            return False
        return self.said.cut or _NET_LINE.fullmatch(net["how"]) is None

    @property
    def ranks(self) -> tuple[str, str]:
        """The rank that logged it and the other end's."""
        sender, receiver = self.match["sender"], self.match["receiver"]
        return (sender, receiver) if self.side == SEND else (receiver, sender)


class _Communicators:
    """The hosts of ranks, by communicator: by its id since NCCL 2.17, by its size before."""

    def __init__(self, said: Sequence[_Said]) -> None:
        lines = [(each, match) for each in said if each.host and (match := _COMMUNICATOR.search(each.text))]
        ids = {
            (each.host, each.pid, match["pointer"]): named["id"]
            for each, match in lines
            if (named := _COMMUNICATOR_ID.search(each.text))
        }
        self._hosts: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
        for each, match in lines:
            name = ids.get((each.host, each.pid, match["pointer"]), f"of {match['size']}")
            self._hosts[name][match["rank"]].add(each.host)

    def other_host(self, host: str, own: str, other: str) -> str:
        """Return the host of rank `other` where rank `own` is on `host`; empty when it is not certain."""
        possible = [ranks.get(other, set()) for ranks in self._hosts.values() if host in ranks.get(own, ())]
        return _single_value(set().union(*possible)) if all(possible) else ""


def of_nccl(log: str) -> tuple[Path, ...]:
    """Return each channel as NCCL logged it, with NCCL_DEBUG=INFO."""
    said = tuple(_read_lines(log))
    seen = [_Seen(said=each, match=match) for each in said if (match := _CHANNEL.search(each.text))]
    communicators, opposite = _Communicators(said), _find_other_hosts(seen)
    ports, undecided = _read_ports(said), _find_plugin_transport(said)
    return tuple(
        Path(
            channel=f"{each.match['channel']}{f' {side}' if (side := each.match['side']) else ''}",
            sender=each.match["sender"],
            receiver=each.match["receiver"],
            carrier=_carrier(each.match["via"], undecided),
            evidence=each.said.text,
            host=each.said.host,
            other_host=communicators.other_host(each.said.host, *each.ranks) or opposite.get(_key_of_end(each), ""),
            nic=_find_nic(each, ports),
            cut=each.cut,
        )
        for each in seen
    )


def _carrier(via: str, undecided: str = "") -> str:
    """Return the kind of a way: of NET/IB/0(1)/GDRDMA/Shared what counts is NET/IB/GDRDMA.

    `undecided` is what HPC-X's plugin logged of the way that it chose.
    """
    net = _VIA_NET.match(via)
    if via.startswith(_SHARED_MEMORY):
        return "SHM"
    if net is None:
        return re.split(r"[/\s]", via, maxsplit=1)[0]
    name = (undecided or net["name"]) if net["name"].startswith(_UNDECIDED) else net["name"]
    name = "IB" if _VERBS.fullmatch(name) else name
    return f"{NET}{name}{'/GDRDMA' if '/GDRDMA' in net['how'] else ''}"


def find_largest_communicator(log: str) -> int:
    """Return how many ranks the largest communicator had, of those that NCCL logged; 0 where it logged none."""
    return max((int(match["size"]) for match in _COMMUNICATOR.finditer(log)), default=0)


def link_layer(nic: str) -> str:
    """Return what a NIC's ports speak, as NCCL says it; empty where it does not say, and of iWARP."""
    _, slash, layer = nic.rpartition("/")
    return layer if slash and not _IWARP.search(nic) else ""


def find_without_rdma(log: str) -> str:
    """Return NCCL's line by which it had no RDMA; empty where there is none, or any process had a port or a plugin."""
    lines = log.splitlines()
    if any(_NETWORK.search(line) or (_USING.search(line) and _PORT.search(line)) for line in lines):
        return ""
    return next((match[0] for line in lines if (match := _WITHOUT_RDMA.search(line))), "")


def find_alternatives(log: str) -> tuple[str, ...]:
    """Return what else can have carried collectives between nodes, as far as NCCL logged it."""
    return tuple(
        words.format(next(filter(None, match.groups()))) for form, words in _ALTERNATIVES if (match := form.search(log))
    )


def _read_lines(log: str) -> Iterator[_Said]:
    for line in log.splitlines():
        starts = [match.start() for match in _HEAD.finditer(line)][1:]
        for begin, end in pairwise((0, *starts, len(line))):
            piece = line[begin:end].strip()
            head = _HEAD.search(piece)
            host, pid = (head["host"], head["pid"]) if head else ("", "")
            host = "" if _GLUED.search(line[:begin]) else host
            cut = end < len(line) and not line[end - 1].isspace()
            before, *channels = _BEGINS.split(piece)
            for text in channels if len(channels) > 1 else [before + "".join(channels)]:
                yield _Said(host=host, pid=pid, text=text, cut=cut and piece.endswith(text))


def _key_of_end(seen: _Seen) -> tuple[str, ...]:
    return (*seen.key, seen.side, seen.said.host)


def _find_other_hosts(seen: Sequence[_Seen]) -> dict[tuple[str, ...], str]:
    """Return the other end's host of each line, by the other end's own line, where only one can be it."""
    hosts: dict[tuple[str, ...], set[str]] = defaultdict(set)
    receivers: dict[str, set[str]] = defaultdict(set)  # up to NCCL 2.3, where no sender logs
    for each in seen:
        if each.match["side"]:
            hosts[(*each.key, each.side)].add(each.said.host)
        elif each.side == RECEIVE:
            receivers[each.match["receiver"]].add(each.said.host)
    other = {SEND: RECEIVE, RECEIVE: SEND}
    return {
        _key_of_end(each): _single_value(
            hosts[(*each.key, other[each.side])] if each.match["side"] else receivers[each.match["sender"]]
        )
        for each in seen
        if each.match["via"].startswith(NET)
    }


def _single_value(values: set[str]) -> str:
    return next(iter(values)) if len(values) == 1 else ""


def _find_plugin_transport(said: Sequence[_Said]) -> str:
    """Return the way that HPC-X's plugin chose; empty where processes chose several, or none logged it."""
    return _single_value({match["name"] for each in said if (match := _CHOSEN.search(each.text))})


def _read_ports(said: Sequence[_Said]) -> dict[tuple[str, str, int], str]:
    """Return the NIC's port or ports behind each of a process's network devices."""
    ports = {}
    for each in said:
        if _USING.search(each.text):
            for match in _PORT.finditer(each.text):
                merged = "+".join(_MERGED_PORT.findall(match["merged"] or ""))
                ports[each.host, each.pid, int(match["index"])] = merged or match["port"]
        elif (match_ := _VIRTUAL.search(each.text)) and int(match_["ports"]) > 1:
            ports[each.host, each.pid, int(match_["index"])] = match_["name"] + _layer_of(each, match_["name"], ports)
    return ports


def _layer_of(said: _Said, merged: str, ports: Mapping[tuple[str, str, int], str]) -> str:
    """Return the link layer of merged ports, which NCCL joins only where it is one: that of the first, as listed."""
    first = f"{merged.partition('+')[0]}:"
    listed = (port for (*process, _), port in ports.items() if process == [said.host, said.pid])
    return next((f"/{port.rpartition('/')[2]}" for port in listed if port.startswith(first)), "")


def _find_nic(seen: _Seen, ports: dict[tuple[str, str, int], str]) -> str:
    net = _VIA_NET.match(seen.match["via"])
    return ports.get((seen.said.host, seen.said.pid, int(net["device"])), "") if net else ""
