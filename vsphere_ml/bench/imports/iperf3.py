"""iperf3: its JSON and its text, of one TCP test in one direction between two hosts."""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING, Any

from vsphere_ml.bench.imports.parsed import (
    ImportOptions,
    ParsedLog,
    joined_runs_error,
    nothing,
    number,
    on_one_host,
    other_statistic,
)
from vsphere_ml.bench.model.record import LinkResult, Workload
from vsphere_ml.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

IPERF3 = "iperf3"
_RESULT = re.compile(
    r"^\s*(?:\[\s*(?P<id>\d+|SUM)\])?(?:\[[TR]X-[CS]\])?\s*0\.00-\s*(?P<end>[\d.]+)\s*sec\s+\S+\s+\S?Bytes\s+"
    r"(?P<rate>\d+(?:\.\d+)?)\s+(?P<unit>[KMGT]?)(?P<what>bits|Bytes)/sec\b.*\breceiver\s*$"
)
_STREAM = re.compile(r"^\s*\[\s*(\d+|SUM)\](?:\[[TR]X-[CS]\])?\s+\d+\.\d+-\s*\d+\.\d+\s+sec")
_ENDS = re.compile(r"\blocal (\S+) port \d+ connected (?:to|with) (\S+) port \d+")
_SERVER = re.compile(r"Connecting to host ([^\s,]+)|Accepted connection from ([^\s,]+)")
_PACED = re.compile(r"\biperf3\b.*\s(?:-b\s*|--bitrate[ =]|--bandwidth[ =]|--fq-rate[ =])(?!0(?:\s|$))\S")
_DATAGRAMS = re.compile(r"Lost/Total Datagrams|Total Datagrams|\biperf3\b.*\s(?:-u|--udp)\b")
_IPERF2 = re.compile(r"^(?:Client connecting to|Server listening on) .*(?:TCP|UDP) port \d+")
_SCALES = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}


def is_json(document: Any) -> bool:
    return isinstance(document, dict) and "test_start" in (document.get("start") or {})


def is_text(lines: Sequence[str]) -> bool:
    titles = any(("Bitrate" in line or "Bandwidth" in line) and "Interval" in line for line in lines)
    return titles and not any(_IPERF2.search(line) for line in lines)


def json(document: Any, _: ImportOptions) -> ParsedLog:
    """Return what the receiver got."""
    if document.get("error"):
        raise ConfigError(
            f"this iperf3 run failed: {document['error']}", code="import.empty", target=IPERF3, hint="run it again"
        )
    start, test = document["start"], document["start"]["test_start"]
    received = number(str(document.get("end", {}).get("sum_received", {}).get("bits_per_second", "")))
    if received is None:
        raise nothing(IPERF3, "end.sum_received")
    _refuse_paced(paced=_is_paced(test))
    _refuse_other_protocol(str(test.get("protocol") or "TCP"))
    if test.get("bidir"):
        raise _both_directions()
    ends = [(str(each.get("local_host", "")), str(each.get("remote_host", ""))) for each in start.get("connected", ())]
    _refuse_ends(ends, [str(start.get("connecting_to", {}).get("host", ""))])
    client, server = _client_and_server(start, ends)
    sender, receiver = (server, client) if test.get("reverse") else (client, server)
    link = LinkResult(tool=IPERF3, sender=sender, receiver=receiver, bytes_per_s=received / 8)
    version = {"iperf3": str(start.get("version", "")).removeprefix("iperf ")}
    return _make_result(link, streams=max(len(ends), _count(test.get("num_streams"))), versions=version)


def text(lines: Sequence[str], _: ImportOptions) -> ParsedLog:
    """Return what the receiver got, of all streams together; one test in one direction."""
    if any(re.search(r"\[[TR]X-[CS]\]", line) for line in lines):
        raise _both_directions()
    _refuse_paced(paced=any(_PACED.search(line) or _DATAGRAMS.search(line) for line in lines))
    _refuse_ends(
        [(match[1], match[2]) for line in lines if (match := _ENDS.search(line))],
        [match[1] or match[2] for line in lines if (match := _SERVER.search(line))],
    )
    result = _sum_of_streams(lines)
    rate = float(result["rate"]) * _SCALES[result["unit"]] / (8 if result["what"] == "bits" else 1)
    if result["what"] == "Bytes":  # iperf3 -f K counts these in powers of 1024
        rate *= (1024.0 / 1000.0) ** "_KMGT".index(result["unit"] or "_")
    if number(str(result["rate"])) is None:
        raise nothing(IPERF3, "bytes that arrived")
    ends = ("client", "server")
    sender, receiver = reversed(ends) if any(line.startswith("Reverse mode") for line in lines) else ends
    link = LinkResult(tool=IPERF3, sender=sender, receiver=receiver, bytes_per_s=rate)
    return _make_result(link, streams=_count_streams(lines))


def _make_result(link: LinkResult, *, streams: int, versions: Mapping[str, str] | None = None) -> ParsedLog:
    return ParsedLog(
        tool=IPERF3,
        workload=Workload.LINK,
        ranks=2,
        links=(link,),
        options={"streams": str(streams)} if streams > 1 else {},
        versions=versions or {},
    )


def _count_streams(lines: Sequence[str]) -> int:
    """Return how many streams there were. From 100 on their rows' `[100]` goes as a rank's prefix, their ends stay."""
    listed = {match[1] for line in lines if (match := _STREAM.match(line))} - {"SUM"}
    return max(len(listed), len({match[0] for line in lines if (match := _ENDS.search(line))}))


def _client_and_server(start: Any, ends: Sequence[tuple[str, str]]) -> tuple[str, str]:
    """Return both hosts, whichever of them wrote the file."""
    if not ends:
        return "client", "server"
    local, remote = ends[0]
    return (remote, local) if "accepted_connection" in start else (local, remote)


def _count(value: Any) -> int:
    return value if isinstance(value, int) else 1


def _sum_of_streams(lines: Sequence[str]) -> re.Match[str]:
    """Return the receiver's result of the whole test: with several streams that of their sum."""
    seen = [match for line in lines if (match := _RESULT.match(line))]
    sums = [match for match in seen if match["id"] == "SUM"] or seen
    if not sums:
        raise nothing(IPERF3, "receiver's line")
    if len(sums) > 1:
        raise joined_runs_error(IPERF3, f"{len(sums)} results of a receiver")
    streams = {match[1] for line in lines if (match := _STREAM.match(line))}
    connected = {match[0] for line in lines if (match := _ENDS.search(line))}
    if max(len(streams), len(connected)) > 1 and sums[0]["id"] != "SUM":
        raise nothing(IPERF3, "receiver's [SUM] of its streams")
    return sums[0]


def _is_paced(test: Any) -> bool:
    """Return whether the sender held a rate: one was set, or it is UDP, whose rate is 1 Mbit/s where none was set."""
    rates = [number(str(test.get(key, 0))) for key in ("target_bitrate", "fqrate")]
    return any(rates) or (test.get("protocol") not in {"TCP", None} and "target_bitrate" not in test)


def _refuse_paced(*, paced: bool) -> None:
    if paced:
        raise other_statistic(IPERF3, "a rate that was set (-b, --fq-rate, or UDP's)", "iperf3 over TCP without -b")


def _refuse_other_protocol(protocol: str) -> None:
    if protocol != "TCP":
        raise other_statistic(IPERF3, f"what went by {protocol[:40]}", "iperf3 over TCP without -b")


def _refuse_ends(ends: Iterable[tuple[str, str]], servers: Iterable[str]) -> None:
    """Raise ConfigError where both ends are one host, or the receiver is a group."""
    for local, remote in ends:
        if remote and (local == remote or _is_loopback(remote)):
            raise on_one_host(IPERF3, remote)
        if _is_multicast(remote):
            raise other_statistic(IPERF3, f"what went to the multicast group {remote}", "iperf3 to one host")
    for server in servers:
        if _is_loopback(server):
            raise on_one_host(IPERF3, server)


def _is_loopback(address: str) -> bool:
    if address.partition(".")[0] == "localhost":
        return True
    known = _address(address)
    mapped = getattr(known, "ipv4_mapped", None)
    return known is not None and (mapped or known).is_loopback


def _is_multicast(address: str) -> bool:
    known = _address(address)
    return known is not None and known.is_multicast


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None


def _both_directions() -> ConfigError:
    return other_statistic(IPERF3, "both directions at once (--bidir)", "iperf3 in one direction")
