"""nccl-tests: its table, from 2017 to today, and the file of `-J` (JSON_FILE_VERSION 2 and older)."""

from __future__ import annotations

import re
import statistics
from collections import Counter
from dataclasses import field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from vsphere_ml.bench.imports.collectives import TOOL, TYPE_BYTES, CollectiveRow, find_collectives, identify
from vsphere_ml.bench.imports.parsed import (
    Device,
    ImportOptions,
    ParsedLog,
    differs,
    every,
    first_group,
    joined_runs_error,
    left_out,
    nothing,
    number,
    other_statistic,
    parse_integer,
    parse_number,
    rounding,
    several_series_error,
    sizes_of,
    truncated_diagnostics,
)
from vsphere_ml.bench.model.record import SweepPoint, Workload
from vsphere_ml.core.diagnostics import Diagnostic
from vsphere_ml.core.errors import ConfigError
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_DEVICE = re.compile(
    r"^\s*#?\s*Rank\s+(\d+)\s+(?:Group\s+\d+\s+)?(?:Pid\s+\d+\s+)?on\s+(\S+)\s+device\s+(\d+)\s+\[([^]]*)\]\s*(.*)$"
)
_PROCESS = re.compile(r"^\s*#?\s*nThread\s+(\d{1,4})\s+nGpus\s+(\d{1,4})\b")
# Titles differ: `bytes N type op time … res` and milliseconds until 2018, root in each table since 2.13, i_min and
# others with -I 1; #wrong was called error before, and was the largest difference. Forums eat the # at a line's start.
_TITLES = re.compile(r"^\s*#?\s*(?:size\s+count|bytes\s+N)\s+type\b.*\b(?:time|cpu|cputime)\b")
_END = "Out of bounds values"
MOST_GPUS = 1024  # of one process; the file says two numbers, and they could be any
_TIMES = frozenset({"time", "cpu", "cputime"})
_OPERATIONS = frozenset({"redop", "op"})
_NO_OPERATION = frozenset({"", "none"})
_STAMP = re.compile(r"\s+\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\s*$")  # of -T
_ROUNDED = 4096  # bytes, below which several sizes can become one
_AVERAGE_OFF = 0.01  # of the tool's own average: rows are missing
_MEAN_TIMES = Diagnostic(
    code="import.mean-times",
    target=TOOL,
    message="each time is the mean of the tool's iterations: their spread is not in it",
    hint="nccl-tests of 2026 write every iteration with -I 1 -J FILE",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Columns:
    """What a table's titles say."""

    titles: tuple[str, ...]
    time: int  # where the first time stands

    @property
    def left(self) -> tuple[str, ...]:
        return self.titles[: self.time]

    @property
    def figures(self) -> tuple[str, ...]:
        return self.titles[self.time :]

    @property
    def second_s(self) -> float:
        """The unit of times."""
        return 1e-3 if self.titles[0] == "bytes" else 1e-6

    @property
    def result_columns(self) -> int:
        return sum(title in _TIMES for title in self.figures)


@dataclass(slots=True)
class _Table:
    """The rows of a table, the lines in it that are broken, and every bus bandwidth that was printed."""

    rows: list[CollectiveRow] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    bus: list[float] = field(default_factory=list)


def is_text(lines: Sequence[str]) -> bool:
    """Return whether its titles are there: documents leave out the line above them, or keep nothing else."""
    return any("busbw" in line and (_TITLES.match(line) or "out-of-place" in line) for line in lines)


def is_json(document: Any) -> bool:
    return isinstance(document, dict) and "nccl_version" in document and "results" in document


def text(lines: Sequence[str], asked: ImportOptions) -> ParsedLog:
    """Return the table's out-of-place times."""
    columns, table = _table(lines)
    if not table.rows:
        raise nothing(TOOL, "times")
    devices = tuple(
        Device(
            rank=int(match[1]), hostname=match[2], name=match[5].strip(), index=int(match[3]), address=match[4].strip()
        )
        for line in lines
        if (match := _DEVICE.match(line))
    )
    ranks = _ranks([each.rank for each in devices], asked, _suspect_list(lines, devices))
    names = find_collectives(line for line in lines if line.startswith("# Collective test")) or find_collectives(lines)
    failed = [
        f"the tool found {count} values out of bounds"
        for count in every(r"Out of bounds values\s*:\s*(\d+) FAILED", lines)
    ]
    return _make_parsed(
        table.rows,
        asked,
        ranks=ranks,
        names=names,
        devices=devices,
        version=first_group(r"nccl-library=(\d+)", lines),
        modes=_modes(lines),
        diagnostics=(_MEAN_TIMES, *left_out(TOOL, table.broken), *_end(lines, table, columns)),
        wrong=(*table.wrong, *failed),
    )


def json(document: Any, asked: ImportOptions) -> ParsedLog:
    """Return the file's out-of-place times: the tool's own, and beside them every iteration where `-I 1` kept them."""
    command = tuple(str(each) for each in document.get("args", []))
    results = [each for each in document["results"] if _read_integer(each["size"]) > 0]
    rows = [_row_of(each) for each in results]
    if not rows:
        raise nothing(TOOL, "times")
    devices = tuple(_devices(document.get("config", {})))
    iterations = {id(row): _iterations(each) for row, each in zip(rows, results, strict=True)}
    return _make_parsed(
        rows,
        asked,
        ranks=_ranks([each.rank for each in devices], asked),
        names=find_collectives(command[:1]),
        devices=devices,
        version=str(document["nccl_version"]),
        modes=_modes_of_file(document.get("config", {})),
        variables=dict(_nccl_variables(document.get("env", []))),
        command=command,
        diagnostics=() if all(iterations.values()) else (_MEAN_TIMES,),
        wrong=_describe_wrong_values(_count_wrong_values(results)),
        iterations=iterations,
    )


def _devices(config: Any) -> Iterator[Device]:
    """Yield every rank's GPU. Of a process with several the file lists the first; the others follow it in order."""
    each_has = _read_integer(config.get("nthreads", 1)) * _read_integer(config.get("ngpus", 1))
    if each_has > MOST_GPUS:
        raise ValueError(f"{each_has} GPUs of one process")
    for each in config.get("devices", []):
        rank, index = _read_integer(each["rank"]), each.get("device")
        yield Device(
            rank=rank,
            hostname=str(each["hostname"]),
            name=str(each.get("device_info", "")),
            index=index,
            address=str(each.get("device_hex", "")),
        )
        for at in range(1, each_has):
            following = None if index is None else _read_integer(index) + at
            yield Device(rank=rank + at, hostname=str(each["hostname"]), name="", index=following)


def _make_parsed(
    rows: Sequence[CollectiveRow], asked: ImportOptions, *, ranks: int, names: frozenset[str], version: str, **rest: Any
) -> ParsedLog:
    iterations, modes = rest.pop("iterations", {}), rest.pop("modes")
    chosen = _series(rows, asked)
    _refuse_several_runs(chosen)
    collective = identify(chosen, ranks, names, asked.collective)
    sweep = tuple(
        SweepPoint(size_bytes=row.size_bytes, time_s=(row.time_s,), iterations_s=iterations.get(id(row), ()))
        for row in chosen
    )
    return ParsedLog(
        tool=TOOL,
        workload=Workload.NCCL,
        ranks=ranks,
        sweep=sweep,
        options={
            "collective": collective,
            "type": chosen[0].data_type,
            **({"redop": chosen[0].reduction} if chosen[0].reduction else {}),
            "statistic": "mean",
            **modes,
            **sizes_of(sweep),
        },
        versions=_version(version),
        **rest,
    )


def _modes(lines: Sequence[str]) -> dict[str, str]:
    """Return how the calls were made, where -m, -G, -u or -z changed what is measured."""
    modes = {
        "aggregated": (first_group(r"\bagg iters: (\d+)", lines), "1"),
        "graph": (first_group(r"\bgraph: (\d+)", lines), "0"),
        "unaligned": (first_group(r"\bunalign: (\d+)", lines), "0"),
        "blocking": (first_group(r"Blocking Enabled: (\S.*?) *(?:\(-|$)", lines), ""),
    }
    return {name: value for name, (value, usual) in modes.items() if value not in {"", usual}}


def _modes_of_file(config: Any) -> dict[str, str]:
    """Return the same of the file of `-J`, which does not hold all of it."""
    modes = {
        "aggregated": (str(config.get("aggregated_iterations", 1)), "1"),
        "graph": (str(config.get("graph", 0)), "0"),
        "blocking": ("yes" if str(config.get("blocking_collectives")).lower() == "true" else "", ""),
    }
    return {name: value for name, (value, usual) in modes.items() if value != usual}


def _series(rows: Sequence[CollectiveRow], asked: ImportOptions) -> list[CollectiveRow]:
    """Return the rows of one data type, reduction and root: the one that was asked for, or the only one."""
    chosen = [
        row
        for row in rows
        if asked.data_type in {"", row.data_type} and asked.reduction in {"", row.reduction or "none"}
    ]
    if not chosen:
        raise nothing(TOOL, f"rows of {' '.join(filter(None, (asked.data_type, asked.reduction)))}")
    for what, option, values in (
        ("data types", "--data-type", {row.data_type for row in chosen}),
        ("reductions", "--reduction", {row.reduction or "none" for row in chosen}),
        ("roots", "", {str(row.root) for row in chosen}),
    ):
        if len(values) > 1:
            raise several_series_error(TOOL, what, values, option)
    return chosen


def _refuse_several_runs(rows: Sequence[CollectiveRow]) -> None:
    """Raise ConfigError where sizes come again or begin anew under one title: the tool only ever goes up.

    Sizes below 4 KiB may be equal: the tool rounds them down to what divides by the ranks.
    """
    for before, row in pairwise(rows):
        if row.size_bytes < before.size_bytes or (row.size_bytes == before.size_bytes >= _ROUNDED):
            raise joined_runs_error(TOOL, f"{row.size_bytes} bytes come after {before.size_bytes}")


def _suspect_list(lines: Sequence[str], devices: Sequence[Device]) -> str:
    """Return why the last ranks of a list may be missing, which no number shows; empty where nothing says so."""
    match = next((match for line in lines if (match := _PROCESS.match(line))), None)
    each_has = int(match[1]) * int(match[2]) if match else 1
    by_host = Counter(each.hostname for each in devices)
    if each_has and len(devices) % each_has:
        return f"lists {len(devices)} ranks, and each process has {each_has}"
    if len(set(by_host.values())) > 1:
        return f"lists {min(by_host.values())} to {max(by_host.values())} ranks of a host"
    return ""


def _ranks(listed: Sequence[int], asked: ImportOptions, suspect: str = "") -> int:
    """Return how many ranks there were. The list must be whole: a line that was lost would change every figure."""
    if len(set(listed)) < len(listed):
        raise joined_runs_error(TOOL, "a rank is listed twice; processes without MPI each run for themselves")
    if listed and sorted(listed) == list(range(len(listed))) and not suspect:
        if asked.ranks not in {None, len(listed)}:
            raise differs(TOOL, f"it lists {len(listed)} ranks, --ranks says {asked.ranks}", "leave out --ranks")
        return len(listed)
    if asked.ranks is not None and asked.ranks > max(listed, default=-1):
        return asked.ranks
    why = f"lists ranks {_span(listed)} and not all up to there" if listed else "does not say on how many ranks it ran"
    why = suspect or why
    raise ConfigError(f"{TOOL} {why}", code="import.unknown-size", target=TOOL, hint="--ranks N")


def _span(listed: Sequence[int]) -> str:
    return ", ".join(map(str, sorted(listed)[:4])) + (f" … {max(listed)}" if len(listed) > 4 else "")  # noqa: PLR2004


def _table(lines: Sequence[str]) -> tuple[_Columns, _Table]:
    columns, table, ended = None, _Table(), False
    for line in lines:
        if _TITLES.match(line):
            if columns is not None:
                raise joined_runs_error(TOOL, "there are two tables")
            columns = _columns(line)
        elif columns is not None and not ended and _is_row(line):
            _add_row(table, columns, line)
        ended = columns is not None and (ended or _END in line)
    if columns is None:
        raise nothing(TOOL, "titles of a table")
    return columns, table


def _is_row(line: str) -> bool:
    """Return whether this is meant as a row, whole or not."""
    return line[:1].isdigit() or not TYPE_BYTES.keys().isdisjoint(line.split()[2:3])


def _columns(line: str) -> _Columns:
    titles = [title for title in line.lstrip("# ").split() if title != "timestamp"]
    if not _TIMES.isdisjoint(titles) and "time" not in titles:
        raise other_statistic(TOOL, "the CPU's time of the calls (-C 1)", "run it without -C")
    return _Columns(titles=tuple(titles), time=titles.index("time"))


def _add_row(table: _Table, columns: _Columns, line: str) -> None:
    cells = _STAMP.sub("", line).split()
    row = _row(cells, columns)
    if row is None:
        table.broken.append(line)
    elif row.size_bytes > 0:
        table.rows.append(row)
    if row is not None:
        figures = cells[-len(columns.figures) :]
        width = len(columns.figures) // columns.result_columns
        table.bus += [float(figures[option * width + 2]) for option in range(columns.result_columns)]
        counts = [figures[at] for at, title in enumerate(columns.figures) if title == "#wrong"]
        table.wrong += _describe_wrong_values((row.size_bytes, count) for count in counts)


def _row(cells: Sequence[str], columns: _Columns) -> CollectiveRow | None:
    """Return a row read from its end, since fields before the figures can be blank; None when it is not whole."""
    figures, left = cells[-len(columns.figures) :], cells[: -len(columns.figures)]
    if not 3 <= len(left) <= len(columns.left) or not _are_integers(figures, columns):  # noqa: PLR2004 - size, count, type
        return None
    size, count = parse_integer(left[0]), parse_integer(left[1])
    fields = _read_operation(left[3:], columns.left[3:])
    time = number(figures[0])
    if size is None or count is None or fields is None or not left[2][0].isalpha() or time is None:
        return None
    width = len(columns.figures) // columns.result_columns
    return CollectiveRow(
        size_bytes=size,
        count=count,
        data_type=left[2],
        reduction=fields[0],
        root=fields[1],
        time_s=time * columns.second_s,
        time_bound_s=rounding(figures[0]) * columns.second_s,
        algorithm=float(figures[1]) * 1e9,
        algorithm_bound=rounding(figures[1]) * 1e9,
        bus=float(figures[2]) * 1e9,
        bus_bound=rounding(figures[2]) * 1e9,
        in_place_checked=_in_place(figures[3], figures[width + 3] if columns.result_columns > 1 else "N/A"),
    )


def _are_integers(figures: Sequence[str], columns: _Columns) -> bool:
    """Return whether each figure is there as the tool prints it: bandwidths have a decimal point, counts may be N/A."""
    if len(figures) != len(columns.figures):
        return False
    return all(
        _is_count(cell, title) if title in {"#wrong", "error", "res"} else parse_number(cell) is not None
        for cell, title in zip(figures, columns.figures, strict=True)
    )


def _is_count(cell: str, title: str) -> bool:
    """Return whether this is a count of wrong values, or, until 2022, a difference such as 2e-07."""
    if cell == "N/A":
        return True
    return parse_number(cell) is not None and (
        title == "#wrong" or re.fullmatch(r"\d(?:\.\d+)?e[+-]\d\d", cell) is not None
    )


def _read_operation(cells: Sequence[str], titles: Sequence[str]) -> tuple[str | None, int | None] | None:
    """Return operation and root of a row; a cell less than titles means that the operation is blank."""
    answers = dict(zip(reversed(titles), reversed(cells), strict=False))
    root, operation = (
        answers.get("root"),
        next((answers[title] for title in titles if title in _OPERATIONS & set(answers)), ""),
    )
    if root is not None and re.fullmatch(r"-1|\d{1,9}", root) is None:
        return None
    if _OPERATIONS.isdisjoint(titles):
        return None, None if root is None else int(root)
    return "" if operation in _NO_OPERATION else operation, None if root is None else int(root)


def _in_place(out: str, within: str) -> bool | None:
    return None if out == "N/A" else within != "N/A"


def _end(lines: Sequence[str], table: _Table, columns: _Columns) -> Iterator[Diagnostic]:
    """Yield what shows that rows are missing: no end, or an average that is another than that of the rows."""
    text = first_group(r"Avg bus bandwidth\s*:\s*(\S+)", lines)
    average = parse_number(text)
    if average is None:
        yield from truncated_diagnostics(TOOL, "its average")
        return
    ours = statistics.fmean(table.bus) if table.bus else 0.0
    if not table.broken and columns.result_columns > 0 and abs(ours - average) > max(0.02, _AVERAGE_OFF * average):
        message = f"the tool's average is {average:g} GB/s, that of the rows {ours:.4g}: rows are missing or changed"
        yield Diagnostic(code="import.left-out", target=TOOL, message=message, hint="give the whole output")


def _row_of(result: Any) -> CollectiveRow:
    """Return the row that a result of the JSON file is; KeyError and others where it is none."""
    option = result.get("out_of_place") or result["in_place"]
    if "cpu_time" in option and "time" not in option:
        raise other_statistic(TOOL, "the CPU's time of the calls (-C 1)", "run it without -C")
    time, algorithm, bus = (_read_positive(option[key], key) for key in ("time", "alg_bw", "bus_bw"))
    reduction, root = str(result.get("redop", "")), parse_integer(str(result.get("root", "")).strip())
    return CollectiveRow(
        size_bytes=_read_integer(result["size"]),
        count=_read_integer(result["count"]),
        data_type=str(result["type"]),
        reduction="" if reduction in _NO_OPERATION else reduction,
        root=-1 if root is None else root,
        time_s=time * 1e-6,
        time_bound_s=0.5e-12,  # six decimals
        algorithm=algorithm * 1e9,
        algorithm_bound=500.0,
        bus=bus * 1e9,
        bus_bound=500.0,
        in_place_checked=_checked_in_place(result),
    )


def _checked_in_place(result: Any) -> bool | None:
    out, within = ((result.get(option) or {}).get("nwrong") for option in ("out_of_place", "in_place"))
    return None if out is None else within is not None


def _read_positive(value: Any, key: str) -> float:
    read = parse_number(str(value))
    if read is None or (key == "time" and read == 0):
        raise ValueError(f"{key} is {str(value)[:40]!r}")
    return read


def _read_integer(value: Any) -> int:
    read = parse_integer(str(value))
    if read is None:
        raise ValueError(f"{str(value)[:40]!r} is no whole number of at most 19 digits")
    return read


def _iterations(result: Any) -> tuple[float, ...]:
    """Return each iteration's time, of its slowest rank, in seconds; those that were to be skipped are left out."""
    option = "out_of_place" if result.get("out_of_place") else "in_place"
    answers = result.get(f"{option}_per_iter") or {}
    times = [value for each in answers.get("times_us") or () if (value := number(str(each))) is not None]
    return tuple(value * 1e-6 for value in times[int(answers.get("skipped_iterations") or 0) :])


def _count_wrong_values(results: Any) -> Iterator[tuple[int, Any]]:
    """Yield each size with its number of wrong values; null where none was looked for (`-c 0`)."""
    for each in results:
        for option in ("out_of_place", "in_place"):
            yield _read_integer(each["size"]), (each.get(option) or {}).get("nwrong")


def _describe_wrong_values(counted: Iterable[tuple[int, Any]]) -> tuple[str, ...]:
    return tuple(
        f"{count:g} wrong values at {size} bytes"
        for size, found in counted
        if (count := number(str(found))) is not None
    )


def _nccl_variables(environment: Any) -> Iterator[tuple[str, str]]:
    """Yield NCCL's own variables. The file holds the whole environment, and nobody knows what secrets are in it."""
    for each in environment:
        name, _, value = str(each).partition("=")
        if name.startswith("NCCL_"):
            yield name, value


def _version(code: str) -> dict[str, str]:
    """Return NCCL's version from its number: 21805 is 2.18.5, and before 2.9 one digit less, 2804 is 2.8.4."""
    value = parse_integer(code)
    if not value:
        return {}
    major, rest = divmod(value, 10_000 if value >= 10_000 else 1000)  # noqa: PLR2004 - NCCL_VERSION's two forms
    return {"nccl": f"{major}.{rest // 100}.{rest % 100}"}
