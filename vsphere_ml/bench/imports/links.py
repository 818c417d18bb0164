"""perftest's bandwidth between two ports, and the all-reduce of OSU's micro-benchmarks."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from vsphere_ml.bench.imports.parsed import (
    ImportOptions,
    ParsedLog,
    differs,
    first_group,
    joined_runs_error,
    left_out,
    nothing,
    number,
    on_one_host,
    other_statistic,
    parse_integer,
    rounding,
    rows,
    sizes_of,
    truncated_diagnostics,
    unnamed_collective,
)
from vsphere_ml.bench.model.record import LinkResult, SweepPoint, Workload
from vsphere_ml.core.diagnostics import Diagnostic
from vsphere_ml.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

PERFTEST = "perftest"
OSU = "osu_allreduce"
# perftest divides by 2^20 in every version since 2013, whether it writes MB (until March 2024) or MiB.
_UNITS = {"Gb/sec": 1e9 / 8, "MB/sec": float(1 << 20), "MiB/sec": float(1 << 20)}
_AVERAGE = re.compile(r"BW average\s*\[([^]]*)\]")
_TESTS = {"RDMA_Write": "ib_write_bw", "RDMA_Read": "ib_read_bw", "Send": "ib_send_bw"}
_TEST = re.compile(r"^\s*(?P<verb>\w+)\s+(?P<kind>(?:[\w.]+ )*?)Test\s*$")  # `RDMA_Write Bidirectional BW Test`
_LIMITED = re.compile(r"\bib_\w+_bw\b.*\s--rate_limit[ =]")  # of the command; no line of the output has it
_KINDS = ("BW ", "Post List BW ")
_PORT = re.compile(r"\b(?P<end>local|remote) address\s*:\s*LID (?P<lid>\w+)")
_GID = re.compile(r"^\s*GID\s*:\s*(?P<gid>[\d:a-f]+)\s*$")
_BOTH_PORTS = re.compile(r"^\s*Dual-port\s*:\s*ON\b")
_RAW = re.compile(r"\bConnection type\s*:\s*RawEth\b|\braw_ethernet_\w+", re.IGNORECASE)
_COLUMN = re.compile(r"#\w+|\w+(?: \w+)?\[[^]]*\]")
_OSU_TITLE = re.compile(r"^# OSU (?:MPI|NCCL|xCCL)(?:-\w+)?\S*\s+(.*?)\s+(?:Test|v\d)")
_OSU_READ = "Allreduce Latency"
_OSU_MEAN_TIMES = Diagnostic(
    code="import.mean-times",
    target=OSU,
    message="each time is the mean over ranks and iterations: the slowest rank's is longer",
    hint="osu_allreduce -f also prints the longest",
)
_OSU_END = Diagnostic(
    code="import.truncated",
    target=OSU,
    message="the tool prints no end: larger sizes may be missing",
)


def is_perftest(lines: Sequence[str]) -> bool:
    return any(
        _AVERAGE.search(line) or ((match := _TEST.match(line)) and "Latency " in match["kind"]) for line in lines
    )


def is_osu(lines: Sequence[str]) -> bool:
    return any(_OSU_TITLE.match(line) for line in lines)


def perftest(lines: Sequence[str], _: ImportOptions | None = None) -> ParsedLog:
    """Return the average bandwidth of the largest message, in one direction."""
    tool = _perftest_program(lines)
    units = {match[1] for line in lines if (match := _AVERAGE.search(line))}
    if len([line for line in lines if _AVERAGE.search(line)]) > 1:
        raise joined_runs_error(tool, "there are two tables")
    factor = _UNITS.get(next(iter(units), ""))
    if factor is None:
        raise ConfigError(
            f"this {tool} output is in {' and '.join(sorted(units))}",
            code="import.unit",
            target=tool,
            hint="--report_gbits",
        )
    _refuse_other_rates(tool, lines)
    _refuse_one_port(lines)
    seen, broken = _perftest_rows(lines, tool, factor)
    if not seen:
        raise nothing(tool, "bandwidth")
    if len({size for size, _ in seen}) < len(seen):
        raise other_statistic(tool, "an average for each interval (--run_infinitely)", "run it for a time: -D 10")
    size, average = max(seen)
    sender, receiver = _ends(tool)
    link = LinkResult(
        tool=tool,
        sender=sender,
        receiver=receiver,
        bytes_per_s=average * factor,
        message_bytes=size,
        gpu_memory=any("gpu buffer" in line.lower() for line in lines),
        rdma_mtu_bytes=parse_integer(first_group(r"^\s*Mtu\s*:\s*(\d+)\[B\]", lines)) or None,
        infiniband=_is_infiniband(lines),
    )
    return ParsedLog(
        tool=tool,
        workload=Workload.LINK,
        ranks=2,
        links=(link,),
        options={"tool": tool, **_queue_pairs(lines)},
        diagnostics=(*left_out(tool, broken), *_perftest_end(lines, tool)),
    )


def _is_infiniband(lines: Sequence[str]) -> bool:
    """Return whether the link is InfiniBand's: --force-link IB says so of RoCE as well, whose ports have no LID."""
    lids = [match["lid"] for line in lines if (match := _PORT.search(line))]
    return first_group(r"^\s*Link type\s*:\s*(\w+)", lines) == "IB" and (not lids or any(map(_is_lid, lids)))


def _is_lid(text: str) -> bool:
    return bool(text.strip("0x"))


def _refuse_other_rates(tool: str, lines: Sequence[str]) -> None:
    if any(_BOTH_PORTS.search(line) for line in lines):
        raise other_statistic(tool, "two ports together (-O)", "run it for each port alone")
    if any(_RAW.search(line) for line in lines):
        raise other_statistic(tool, "raw Ethernet frames (raw_ethernet_bw), which are no RDMA", "run ib_write_bw")
    if any(_LIMITED.search(line) for line in lines):
        raise other_statistic(tool, "a rate that was set (--rate_limit)", "run it without --rate_limit")


def _ends(tool: str) -> tuple[str, str]:
    """Return sender and receiver: what ib_read_bw's client reads, the server sends."""
    return ("server", "client") if tool == "ib_read_bw" else ("client", "server")


def _queue_pairs(lines: Sequence[str]) -> dict[str, str]:
    """Return how many queue pairs there were, where it is not the one that is usual."""
    count = first_group(r"^\s*Number of qps\s*:\s*(\d+)", lines)
    return {"qps": count} if count not in {"", "1"} else {}


def _perftest_program(lines: Sequence[str]) -> str:
    """Return the program whose test this is. What goes both ways, or to a group, is no link's figure."""
    tests = [match for line in lines if (match := _TEST.match(line)) and _is_perftest(match)]
    if len(tests) > 1:
        raise joined_runs_error(PERFTEST, "there are two tests")
    named = sorted({each for each in _TESTS.values() if any(each in line for line in lines)})
    if not tests:
        if len(named) == 1:
            return named[0]
        raise nothing(PERFTEST, "line that names its test, such as `RDMA_Write BW Test`")
    verb, kind = tests[0]["verb"], tests[0]["kind"]
    if "Bidirectional" in kind:
        raise other_statistic(PERFTEST, "both directions together (-b)", "run it without -b")
    if verb not in _TESTS or kind not in _KINDS:
        raise other_statistic(PERFTEST, f"{verb} {kind.strip()}, which is no bandwidth of a link", "run ib_write_bw")
    return _TESTS[verb]


def _is_perftest(match: re.Match[str]) -> bool:
    return any(word in match["kind"] for word in ("BW ", "Latency "))


def _refuse_one_port(lines: Sequence[str]) -> None:
    """Raise ConfigError where both ends are one port: they have its GID, or on InfiniBand its LID, which is not 0."""
    lids: dict[str, set[str]] = {"local": set(), "remote": set()}
    gids: dict[str, set[str]] = {"local": set(), "remote": set()}
    end = ""
    for line in lines:
        if match := _PORT.search(line):
            end = match["end"]
            lids[end].add(match["lid"])
        elif end and (match := _GID.match(line)):
            gids[end].add(match["gid"])
    shared_lids = set(filter(_is_lid, lids["local"] & lids["remote"]))
    for same in (*sorted(gids["local"] & gids["remote"]), *sorted(shared_lids)):
        raise on_one_host(PERFTEST, same)


def _perftest_rows(lines: Sequence[str], tool: str, factor: float) -> tuple[list[tuple[int, float]], list[str]]:
    """Return size and average of each row, and the rows that are cut."""
    titles = next(line for line in lines if _AVERAGE.search(line))
    names = _COLUMN.findall(titles)
    columns, at = len(names), next(at for at, name in enumerate(names) if _AVERAGE.search(name))
    rate = next((at for at, name in enumerate(names) if name == "MsgRate[Mpps]"), None)
    seen, broken = [], []
    for cells in rows(lines[list(lines).index(titles) :]):
        size, average = parse_integer(cells[0]), number(cells[at]) if len(cells) >= columns > at else None
        if size is None or average is None or not _has_point(cells[at]):
            broken.append(" ".join(cells))
        else:
            if rate is not None and len(cells) > rate:
                _refuse_other_message_rate(tool, size, (cells[at], factor), cells[rate])
            seen.append((size, average))
    return seen, broken


def _refuse_other_message_rate(tool: str, size: int, average: tuple[str, float], rate: str) -> None:
    """Raise ConfigError where a row's bandwidth and unit are not its message rate times its size, but for rounding.

    perftest_parameters.c computes both from the same iterations and cycles; the rate has six decimals.
    """
    bandwidth, factor = average
    if re.fullmatch(r"\d+\.\d{6}", rate) is None:
        return
    ours, bound = float(rate) * 1e6 * size, rounding(bandwidth) * factor + rounding(rate) * 1e6 * size
    if abs(ours - float(bandwidth) * factor) > 1.001 * bound:
        why = f"at {size} bytes it prints {bandwidth}, its {rate} million messages a second are {ours / factor:.2f}"
        raise differs(tool, why)


def _perftest_end(lines: Sequence[str], tool: str) -> tuple[Diagnostic, ...]:
    """Return that larger messages may be missing, where no rule closes the table."""
    titles = next(at for at, line in enumerate(lines) if _AVERAGE.search(line))
    return (
        ()
        if any(re.match(r"\s*-{20,}", line) for line in lines[titles:])
        else truncated_diagnostics(tool, "the rule below it")
    )


def _has_point(cell: str) -> bool:
    """Return whether a printed figure has the two digits after its point that tell it from one that was cut."""
    return re.fullmatch(r"\d+\.\d\d+", cell) is not None


def osu(lines: Sequence[str], _: ImportOptions) -> ParsedLog:
    """Return the average latencies of osu_allreduce; with `-f` the longest rank's."""
    titles = [match[1] for line in lines if (match := _OSU_TITLE.match(line))]
    if len(titles) > 1:
        raise joined_runs_error("OSU", f"{len(titles)} benchmarks")
    if titles[0] != _OSU_READ:  # not `Non-blocking Allreduce Latency`, whose times have computing in them
        raise unnamed_osu(titles[0])
    over = first_group(r"^# OSU (\w+(?:-\w+)?)\s", lines)  # with -CUDA and others buffers are in GPUs' memory
    heads = [line for line in lines if re.match(r"^#\s*Size\b", line)]
    longest = any("Max Latency" in line for line in heads)
    points, broken = _osu_points(lines, 3 if longest else 1)
    if not points:
        raise nothing(OSU, "times")
    return ParsedLog(
        tool=OSU,
        workload=Workload.ALLREDUCE,
        sweep=points,
        options={
            "collective": "all_reduce",
            "statistic": "longest rank" if longest else "mean over ranks",
            **({"over": over} if over != "MPI" else {}),
            **({"type": text} if (text := first_group(r"^# Datatype:\s*([\w]+)", lines).lower()) else {}),
            **sizes_of(points),
        },
        diagnostics=(*(() if longest else (_OSU_MEAN_TIMES,)), *left_out(OSU, broken), _OSU_END),
        wrong=_describe_failed_validation(lines),
    )


def _describe_failed_validation(lines: Sequence[str]) -> tuple[str, ...]:
    """Return the sizes whose sums `-c` found wrong: the last cell of a row is then `Fail`."""
    failed = [cells[0] for cells in rows(lines) if cells[-1] == "Fail"]
    return tuple(f"the tool found wrong values at {size} bytes" for size in failed)


def unnamed_osu(title: str) -> ConfigError:
    """Return the error of another of OSU's benchmarks."""
    error = unnamed_collective("OSU", (title,))
    return ConfigError(
        f"this is OSU's {title}; only its Allreduce is read",
        code=error.code,
        target=error.target,
        hint="give the output of osu_allreduce",
    )


def _osu_points(lines: Sequence[str], column: int) -> tuple[tuple[SweepPoint, ...], list[str]]:
    """Return the sizes and the rows that are cut: all of a table have as many cells, and two or more decimals."""
    table = list(rows(lines))
    width = max((len(cells) for cells in table), default=0)
    points, broken = [], []
    for cells in table:
        size, time = parse_integer(cells[0]), number(cells[column]) if len(cells) == width > column else None
        if size is None or time is None or not _has_point(cells[column]):
            broken.append(" ".join(cells))
        elif size > 0:
            points.append(SweepPoint(size_bytes=size, time_s=(time * 1e-6,)))
    if len({point.size_bytes for point in points}) < len(points):
        raise joined_runs_error(OSU, "sizes are there twice")
    return tuple(points), broken
