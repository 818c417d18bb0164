"""What ranks printed, line by line, as values. Anything else than a whole line of JSON is no line of ours."""

from __future__ import annotations

import json
import math
from dataclasses import field
from typing import TYPE_CHECKING, Any

from vsphere_ml.core import json_text
from vsphere_ml.core.errors import BenchError
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

SCHEMA = "vsml.bench.rank/1"


@dataclass(slots=True, kw_only=True)
class RankLog:
    """All that one rank printed, and the node whose guest its file lay in. Filled line by line."""

    node: str
    rank: int
    size: int = 1
    local_rank: int = 0
    hostname: str = ""
    boot_id: str = ""
    interface: Mapping[str, Any] = field(default_factory=dict)
    gpus: tuple[Mapping[str, Any], ...] = ()
    model: Mapping[str, Any] = field(default_factory=dict)
    step_s: list[float] = field(default_factory=list)
    input_s: list[float] = field(default_factory=list)
    work_s: list[float] = field(default_factory=list)
    compute_s: list[float] = field(default_factory=list)
    loss: list[float] = field(default_factory=list)
    local: list[tuple[float, float, float | None]] = field(default_factory=list)  # period, compute, exchange
    wall_s: float | None = None
    sweep: list[tuple[int, tuple[float, ...]]] = field(default_factory=list)
    sent_by_size: dict[int, tuple[int, Mapping[str, tuple[int, int]]]] = field(default_factory=dict)  # see `ledger`
    iterations_s: Mapping[int, tuple[float, ...]] = field(default_factory=dict)  # by size, where a tool prints them too
    wrong: list[str] = field(default_factory=list)  # results that were not what they should be
    weights: str = ""
    finite: bool = True  # whether the weights were numbers to the end
    sent: Mapping[str, int] = field(default_factory=dict)  # bytes by network adapter and RDMA device
    priorities: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # by interface: see `marking`
    clocks: list[Mapping[str, str]] = field(default_factory=list)  # of its node's GPUs, a row a GPU and look
    contention: Mapping[str, float] = field(default_factory=dict)  # of its node's guest: `CpuContention`
    peers: tuple[Mapping[str, Any], ...] = ()  # own and other address, and how many sockets between them
    ended: bool = False
    regime: Mapping[str, float] = field(default_factory=dict)  # what a training by a regime came to
    worlds: list[tuple[int, int, int]] = field(default_factory=list)  # ranks, first step, steps before


def read(texts: Mapping[str, str]) -> tuple[RankLog, ...]:
    """Return each rank's log, in the order of ranks. `texts` has the lines of all ranks of a node, by node.

    BenchError `bench.bad-line` when a line of the schema is not what it should be.
    """
    logs: list[RankLog] = []
    for node, text in texts.items():
        current: RankLog | None = None
        for line in lines(text):
            try:
                if line["kind"] == "place":
                    current = _place(node, line)
                    logs.append(current)
                elif current is not None:
                    _add(current, line)
            except (LookupError, TypeError, ValueError, OverflowError, AttributeError) as error:
                raise _bad_line_error(node, line, error) from error
    return tuple(sorted(logs, key=lambda each: each.rank))


def lines(text: str) -> Iterator[Mapping[str, Any]]:
    """Yield the lines that are whole, each an object with a `kind`; a cut job leaves half a line."""
    for line in text.splitlines():
        try:
            value = json_text.parse(line)
        except ValueError:
            continue
        if isinstance(value, dict) and isinstance(value.get("kind"), str):
            yield value


def _place(node: str, line: Mapping[str, Any]) -> RankLog:
    if line["schema"] != SCHEMA:
        raise ValueError(f"schema {line['schema']!r}")
    return RankLog(
        node=node,
        rank=int(line["rank"]),
        size=int(line["size"]),
        local_rank=int(line["local_rank"]),
        hostname=str(line["hostname"]),
        boot_id=str(line["boot_id"]),
        interface=_table(line["interface"] or {}),
        gpus=tuple(map(_table, line["gpus"])),
    )


def _table(value: Any, *keys: str) -> Mapping[str, Any]:
    """Return a value that is a table with these keys; ValueError when it is none."""
    if not isinstance(value, dict) or not value.keys() >= set(keys):
        raise ValueError(f"no table{' with ' if keys else ''}{', '.join(keys)}")
    return value


def _seconds(value: Any) -> float:
    """Return a time; ValueError for one that cannot have been measured."""
    seconds = float(value)
    if not 0 <= seconds < math.inf:
        raise ValueError(f"{seconds} seconds")
    return seconds


def _add(log: RankLog, line: Mapping[str, Any]) -> None:
    reader = _READERS.get(line["kind"])
    if reader is not None:
        reader(log, line)


def _model(log: RankLog, line: Mapping[str, Any]) -> None:
    _table(line.get("versions") or {})
    log.model = line


def _step(log: RankLog, line: Mapping[str, Any]) -> None:
    log.step_s.append(_seconds(line["seconds"]))
    for key in ("input_s", "work_s", "compute_s", "loss"):
        if key in line:
            getattr(log, key).append(float(line[key]))
    if "compute_s" in line and "exchange_s" in line:
        log.work_s.append(float(line["compute_s"]) + float(line["exchange_s"]))


def _local_step(log: RankLog, line: Mapping[str, Any]) -> None:
    exchange = float(line["exchange_s"]) if "exchange_s" in line else None
    log.local.append((_seconds(line["seconds"]), float(line["compute_s"]), exchange))


def _wall(log: RankLog, line: Mapping[str, Any]) -> None:
    log.wall_s = _seconds(line["seconds"])


def _sweep(log: RankLog, line: Mapping[str, Any]) -> None:
    log.sweep.append((int(line["size_bytes"]), tuple(map(_seconds, line["seconds"]))))
    if "sent" in line:
        _count_sent(log, int(line["size_bytes"]), int(line["exchanges"]), line["sent"])
    if not line["right"]:
        log.wrong.append(f"the sum over {line['size_bytes']} bytes")


def _count_sent(log: RankLog, size: int, exchanges: int, sent: Mapping[str, Any]) -> None:
    counters = {str(name): (int(count), int(packets)) for name, (count, packets) in sent.items()}
    log.sent_by_size[size] = (exchanges, counters)


def _sync(log: RankLog, line: Mapping[str, Any]) -> None:
    log.weights = str(line["weights"])
    log.finite = bool(line.get("finite", True))


def _priorities(log: RankLog, line: Mapping[str, Any]) -> None:
    log.priorities = {
        str(name): {"device": each["device"], "sent": each["sent"]} for name, each in line["ports"].items()
    }


def _traffic(log: RankLog, line: Mapping[str, Any]) -> None:
    log.sent = {str(name): int(count) for name, count in line["bytes"].items()}
    log.peers = tuple(_table(each, "own", "other", "sockets") for each in line["peers"])


def _contention(log: RankLog, line: Mapping[str, Any]) -> None:
    log.contention = {key: float(line[key]) for key in ("steal", "pressure") if line.get(key) is not None}


def _clocks(log: RankLog, line: Mapping[str, Any]) -> None:
    log.clocks += [{str(key): str(value) for key, value in row.items()} for row in line["gpus"]]


def _elastic(log: RankLog, line: Mapping[str, Any]) -> None:
    log.worlds.append((int(line["size"]), int(line["step"]), len(log.step_s)))


def _regime(log: RankLog, line: Mapping[str, Any]) -> None:
    log.regime = {key: float(line[key]) for key in ("size_bytes", "samples", "loss", "behind")}
    _count_sent(log, int(line["size_bytes"]), int(line["steps"]), line["sent"])


def _end(log: RankLog, _line: Mapping[str, Any]) -> None:
    log.ended = True


_READERS: Mapping[str, Callable[[RankLog, Mapping[str, Any]], None]] = {
    "model": _model,
    "step": _step,
    "local": _local_step,
    "wall": _wall,
    "sweep": _sweep,
    "sync": _sync,
    "traffic": _traffic,
    "priorities": _priorities,
    "contention": _contention,
    "clocks": _clocks,
    "elastic": _elastic,
    "regime": _regime,
    "end": _end,
}


def _bad_line_error(node: str, line: Mapping[str, Any], error: Exception) -> BenchError:
    return BenchError(
        f"{node}: unexpected output of a rank: {type(error).__name__}: {error}",
        code="bench.bad-line",
        target=node,
        details=(json.dumps(dict(line))[:200],),
    )
