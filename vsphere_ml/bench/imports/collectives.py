"""Which collective a table of nccl-tests is about, by its name and by its figures.

Before June 2025 no line of the output names it, so the figures must: what the table's columns hold, how many elements
each rank gives, and by what the printed bus bandwidth exceeds size by time. Layouts and factors are those of
nccl-tests' src/*.cu from 2017 to 2026.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from vsphere_ml.bench.imports.parsed import differs, unnamed_collective
from vsphere_ml.bench.network.bus_bandwidth import bus_factor
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

TOOL = "nccl-tests"
_PROGRAM = re.compile(r"\b(\w+?)_perf(?:_mpi)?\b")
_REDUCING = frozenset({"all_reduce", "reduce_scatter", "reduce", "sendrecv"})  # sendrecv_perf prints an operation too
_ROOTED = frozenset({"broadcast", "reduce", "gather", "scatter"})
_FULL_SIZE = frozenset({"all_reduce", "broadcast", "reduce", "sendrecv"})  # each rank gives or takes all of the size
_UNCHECKED = frozenset({"alltoall", "alltoallv", "sendrecv"})
_ONLY_NAMED = frozenset({"alltoallv"})  # since 2026, and every build of it names itself
_EXACT = 1e-6
TYPE_BYTES = {
    **dict.fromkeys(("int8", "char", "uint8", "fp8_e4m3", "fp8_e5m2", "f8e4m3", "f8e5m2", "fp8e4m3", "fp8e5m2"), 1),
    **dict.fromkeys(("half", "bfloat16"), 2),
    **dict.fromkeys(("int32", "int", "uint32", "float"), 4),
    **dict.fromkeys(("int64", "uint64", "double"), 8),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveRow:
    """One size of a table, out of place. A bound is half a unit of what was printed last."""

    size_bytes: int
    count: int
    data_type: str
    reduction: str | None  # empty where it is blank or `none`; None where the table has no such column
    root: int | None  # None where the table has no such column
    time_s: float
    time_bound_s: float
    algorithm: float  # bytes per second, as printed
    algorithm_bound: float
    bus: float  # likewise
    bus_bound: float
    in_place_checked: bool | None = None  # whether results in place were; None where none were checked

    @property
    def known_bytes(self) -> int | None:
        """What `count` elements take; None of a type that is not known."""
        width = TYPE_BYTES.get(self.data_type)
        return None if width is None else width * self.count

    def could_be(self, factor: float) -> bool:
        """Return whether the printed bus bandwidth is size by time with this factor, within what printing rounds."""
        low = self.size_bytes / (self.time_s + self.time_bound_s) * factor
        high = self.size_bytes / max(self.time_s - self.time_bound_s, 1e-12) * factor
        capacity = self.bus_bound + _EXACT * self.bus
        return low <= self.bus + capacity and self.bus - capacity <= high


def find_collectives(lines: Iterable[str]) -> frozenset[str]:
    """Return the collectives whose programs are named in these lines."""
    seen = {match[1] for line in lines if "_perf" in line for match in _PROGRAM.finditer(line)}
    return frozenset(seen & set(_NAMES))


def identify(rows: Sequence[CollectiveRow], ranks: int, names: frozenset[str], asked: str) -> str:
    """Return the collective that all rows are of.

    `import.differs` when no row can be of the one that was named or asked for, `import.collective` when several can be.
    """
    could = [each for each in _NAMES if all(_fits(row, each, ranks) for row in rows)]
    wanted = asked or (next(iter(names)) if len(names) == 1 else "")
    if wanted:
        if wanted in could:
            return wanted
        row = _worst(rows, wanted, ranks)
        raise differs(TOOL, _contradiction(row, wanted, ranks), "check --ranks and --collective")
    could = [each for each in could if each not in _ONLY_NAMED]
    if len(could) == 1:
        return could[0]
    if not could:
        raise _none(rows, ranks)
    raise unnamed_collective(TOOL, could)


def _fits(row: CollectiveRow, collective: str, ranks: int) -> bool:
    return (
        _operation(row, collective)
        and _root(row, collective)
        and _elements(row, collective, ranks)
        and _has_check_column(row, collective)
        and _algorithm(row, collective, ranks)
        and row.could_be(bus_factor(ranks, collective))
    )


def _operation(row: CollectiveRow, collective: str) -> bool:
    """Until 2022 each program had only the columns it needs; alltoall_perf alone had this one and left it blank."""
    if row.root is None:
        blank = row.reduction == ""
        return blank == (collective == "alltoall") and bool(row.reduction) == (collective in _REDUCING - {"sendrecv"})
    return bool(row.reduction) == (collective in _REDUCING)


def _root(row: CollectiveRow, collective: str) -> bool:
    if row.root is None:  # before August 2022 those alone had the column that need it
        return collective not in _ROOTED
    return (row.root >= 0) == (collective in _ROOTED)


def _elements(row: CollectiveRow, collective: str, ranks: int) -> bool:
    if row.known_bytes is None or collective in _ONLY_NAMED:
        return True
    return row.known_bytes * (1 if collective in _FULL_SIZE else ranks) == row.size_bytes


def _has_check_column(row: CollectiveRow, collective: str) -> bool:
    """Since September 2022 all-to-all and sendrecv alone do not check what they do in place."""
    if row.in_place_checked is None or row.root is None:
        return True
    return row.in_place_checked != (collective in _UNCHECKED)


def _algorithm(row: CollectiveRow, collective: str, ranks: int) -> bool:
    """hypercube_perf alone prints the same figure twice where others have the factor (n-1)/n between them."""
    if collective != "hypercube" or ranks < 2:  # noqa: PLR2004 - one rank alone
        return True
    return abs(row.algorithm - row.bus) <= row.algorithm_bound + row.bus_bound


def _worst(rows: Sequence[CollectiveRow], collective: str, ranks: int) -> CollectiveRow:
    return next(row for row in rows if not _fits(row, collective, ranks))


def _contradiction(row: CollectiveRow, collective: str, ranks: int) -> str:
    ours = row.size_bytes / row.time_s * bus_factor(ranks, collective) / 1e9
    return (
        f"at {row.size_bytes} bytes it prints {row.bus / 1e9:.4g} GB/s of bus bandwidth, {row.count} elements of "
        f"{row.data_type}; {collective} of {ranks} ranks in {row.time_s * 1e6:.6g} us is {ours:.4g} GB/s"
    )


def _none(rows: Sequence[CollectiveRow], ranks: int) -> Exception:
    single = next((row for row in rows if not any(_fits(row, each, ranks) for each in _NAMES)), None)
    if single is not None:
        nearest = "all_reduce" if single.reduction else "all_gather"
        return differs(TOOL, _contradiction(single, nearest, ranks), "--ranks N; or check the log: it may be edited")
    return unnamed_collective(TOOL, ())


_NAMES = (
    "all_reduce",
    "reduce_scatter",
    "all_gather",
    "alltoall",
    "alltoallv",
    "broadcast",
    "reduce",
    "gather",
    "scatter",
    "sendrecv",
    "hypercube",
)
