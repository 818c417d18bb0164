"""What a plain tool gets through between two nodes: iperf3 over TCP, the yardstick of everything that goes over it."""

from __future__ import annotations

import math
import shlex
import statistics
from typing import TYPE_CHECKING, Any

from vsphere_ml.bench.model.job import MARK
from vsphere_ml.bench.model.record import LinkLoad, LinkResult
from vsphere_ml.bench.probe.side_by_side import run_side_by_side, split_outputs
from vsphere_ml.core import json_text
from vsphere_ml.core.errors import BenchError
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vsphere_ml.core.model.guest import Peer, Shell

TOOL = "iperf3"
PORT = 24601
# From the first byte on: TCP's slow start takes milliseconds between nodes. Without its first second (`-O`) what a loss
# held up in it counts for the next ones: on lab links of 50 Mbit/s, four streams, 46.2 to 49.4 in place of 47.8.
SECONDS = 4
NEARLY_A_SECOND = 0.9  # the receiver's last interval is a stub of a few milliseconds
STREAMS = 4  # one TCP connection does not fill 100 GbE
# The server begins to listen when it finds the time.
_MEASURE = """\
for turn in 1 2 3 4 5 6 7 8 9 10; do
    out=$(timeout 60 iperf3 -c {to} -B {own} -p {port} -t {seconds} -P {streams} \\
        -J --get-server-output) && break
    sleep 0.5
done
printf '%s' "$out"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """What goes from one node to another: both have their addresses on this rail. No rail: the job's own interface."""

    sender: Peer
    receiver: Peer
    rail: str = ""


def pairs(nodes: Sequence[Peer]) -> tuple[tuple[Peer, Peer], ...]:
    """Return who sends to whom: a ring, so that each node sends once and receives once."""
    return tuple((node, nodes[(at + 1) % len(nodes)]) for at, node in enumerate(nodes)) if len(nodes) > 1 else ()


def serve(shell: Shell, flows: Sequence[Flow], run_id: str) -> None:
    """Let the guest receive one measurement of each flow."""
    commands = (
        f"{MARK}={shlex.quote(run_id)} setsid timeout 90 iperf3 -s -1 -J -B {flow.receiver.address} -p {PORT}"
        for flow in flows
    )
    shell.run("".join(f"{command} </dev/null >/dev/null 2>&1 &\n" for command in commands), timeout_s=60)


def measure(
    shell: Shell, flows: Sequence[Flow], load: LinkLoad = LinkLoad.ALONE, streams: int = STREAMS
) -> tuple[LinkResult, ...]:
    """Return what gets through from this guest, all flows at once; receivers must be served.

    BenchError `bench.link` when nothing does by one of them.
    """
    scripts = [
        _MEASURE.format(
            to=flow.receiver.address,
            own=flow.sender.address,
            port=PORT,
            seconds=SECONDS,
            streams=streams,
        )
        for flow in flows
    ]
    outputs = split_outputs(shell.run(run_side_by_side(scripts), timeout_s=180).out, len(flows))
    return tuple(
        LinkResult(
            tool=TOOL,
            sender=flow.sender.name,
            receiver=flow.receiver.name,
            bytes_per_s=parse_iperf3(text, flow.sender, flow.receiver),
            device=flow.rail,
            load=load,
            streams=streams,
        )
        for flow, text in zip(flows, outputs, strict=True)
    )


def parse_iperf3(text: str, sender: Peer, receiver: Peer) -> float:
    """Return the bytes per second that arrived in the receiver's median second, from the tool's JSON.

    What a loss holds up in one second arrives in the next; and where all nodes send at once, the first one was up to
    15 % short on lab links of 50 Mbit/s. Receivers that report no seconds: of all.
    """
    try:
        document: dict[str, Any] = json_text.parse(text)
        if "error" not in document:
            rate = float(
                statistics.median(_by_seconds(document) or [document["end"]["sum_received"]["bits_per_second"]])
            )
            if not 0 <= rate < math.inf:
                raise ValueError(f"{rate} bits a second")  # noqa: TRY301 - reported like every other broken answer
            return rate / 8
        why = str(document["error"])
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError) as error:
        why = f"{type(error).__name__}: {error}"
    raise BenchError(
        f"iperf3 from {sender.name} to {receiver.name} ({receiver.address}, port {PORT}) measured nothing: {why}",
        code="bench.link",
        target=f"{sender.name} to {receiver.name}",
        hint=f"`vsml ssh {receiver.name} -- ip address`; look for a firewall between the nodes",
    )


def _by_seconds(document: dict[str, Any]) -> list[float]:
    """Return the bits per second of each second that the receiver counted."""
    sums = [each["sum"] for each in document.get("server_output_json", {}).get("intervals", ())]
    return [float(each["bits_per_second"]) for each in sums if each["seconds"] > NEARLY_A_SECOND]
