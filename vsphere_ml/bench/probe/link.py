"""What a plain tool gets through between two nodes: iperf3 over TCP, the yardstick of everything that goes over it."""

from __future__ import annotations

import math
import shlex
from typing import TYPE_CHECKING, Any

from vsphere_ml.bench.model.job import MARK
from vsphere_ml.bench.model.record import LinkResult
from vsphere_ml.core import json_text
from vsphere_ml.core.errors import BenchError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vsphere_ml.core.model.guest import Peer, Shell

TOOL = "iperf3"
PORT = 24601
SECONDS, OMITTED = 3, 1  # the first second is TCP's slow start
# The server begins to listen when it finds the time.
_MEASURE = """\
for turn in 1 2 3 4 5 6 7 8 9 10; do
    out=$(timeout 60 iperf3 -c {to} -B {own} -p {port} -t {seconds} -O {omitted} -J) && break
    sleep 0.5
done
printf '%s' "$out"
"""


def pairs(nodes: Sequence[Peer]) -> tuple[tuple[Peer, Peer], ...]:
    """Return who sends to whom: a ring, so that each node sends once and receives once."""
    return tuple((node, nodes[(at + 1) % len(nodes)]) for at, node in enumerate(nodes)) if len(nodes) > 1 else ()


def serve(shell: Shell, address: str, run_id: str) -> None:
    """Let the guest receive one measurement at this address."""
    command = f"{MARK}={shlex.quote(run_id)} setsid timeout 90 iperf3 -s -1 -B {address} -p {PORT}"
    shell.run(f"{command} </dev/null >/dev/null 2>&1 &", timeout_s=60)


def measure(shell: Shell, sender: Peer, receiver: Peer) -> LinkResult:
    """Return what gets through; the receiver must be served. BenchError `bench.link` when nothing does."""
    text = _MEASURE.format(to=receiver.address, own=sender.address, port=PORT, seconds=SECONDS, omitted=OMITTED)
    answer = shell.run(text, timeout_s=180)
    return LinkResult(
        tool=TOOL, sender=sender.name, receiver=receiver.name, bytes_per_s=parse_iperf3(answer.out, sender, receiver)
    )


def parse_iperf3(text: str, sender: Peer, receiver: Peer) -> float:
    """Return the bytes per second that arrived, from the tool's JSON."""
    try:
        document: dict[str, Any] = json_text.parse(text)
        if "error" not in document:
            rate = float(document["end"]["sum_received"]["bits_per_second"])
            if not 0 <= rate < math.inf:
                raise ValueError(f"{rate} bits a second")  # noqa: TRY301 - told like every other broken answer
            return rate / 8
        why = str(document["error"])
    except (ValueError, LookupError, TypeError, OverflowError) as error:
        why = f"{type(error).__name__}: {error}"
    raise BenchError(
        f"iperf3 from {sender.name} to {receiver.name} ({receiver.address}, port {PORT}) measured nothing: {why}",
        code="bench.link",
        target=f"{sender.name} to {receiver.name}",
        hint=f"vsml ssh {receiver.name} -- ip address; look for a firewall between the nodes",
    )
