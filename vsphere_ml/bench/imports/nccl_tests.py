"""nccl-tests: its table, and the file of `-J` (JSON_FILE_VERSION 2 and older)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from vsphere_ml.bench.imports.parsed import Device, Parsed, found, not_all_reduce, nothing, number, rows
from vsphere_ml.bench.record import Remark, SweepPoint, Workload

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

TOOL = "nccl-tests"
_DEVICE = re.compile(r"^#\s+Rank\s+(\d+)\s.*?\bon\s+(\S+)\s+device\s+(\d+)\s+\[[^]]*\]\s*(.*)$", re.MULTILINE)
# The table's titles differ: root is there since 2.10, i_min and others with -I 1; #wrong was called error before.
_TITLES = r"^#\s+(size\s.*)$"
_MEANS = Remark(
    code="import.means",
    target=TOOL,
    message="each time is the mean of the tool's iterations: their spread is not in it",
    hint="nccl-tests of 2026 write every iteration with -I 1 -J FILE",
)


def is_text(text: str) -> bool:
    return "out-of-place" in text and "busbw" in text


def is_json(document: Any) -> bool:
    return isinstance(document, dict) and "nccl_version" in document and "results" in document


def text(content: str) -> Parsed:
    """Return the table's out-of-place times."""
    collective = found(r"^# Collective test starting:\s*(\S+)", content)
    if collective and "all_reduce" not in collective:
        raise not_all_reduce(TOOL, collective)
    titles = found(_TITLES, content).split()
    at = next((place for place, title in enumerate(titles) if title in {"time", "cpu"}), 0)
    table = [cells for cells in rows(content) if int(cells[0]) > 0 and len(cells) >= len(titles) > at > 0]
    points = [
        SweepPoint(size_bytes=int(cells[0]), time_s=(time * 1e-6,))
        for cells in table
        if (time := number(cells[at])) is not None
    ]
    if not points:
        raise nothing(TOOL, "times")
    devices = tuple(
        Device(rank=int(rank), hostname=host, name=name.strip(), index=int(index))
        for rank, host, index, name in _DEVICE.findall(content)
    )
    counted = [at for at, title in enumerate(titles) if title == "#wrong"]
    return Parsed(
        tool=TOOL,
        workload=Workload.NCCL,
        ranks=len(devices) or None,
        sweep=tuple(points),
        devices=devices,
        versions=_version(found(r"nccl-library=(\d+)", content)),
        remarks=(_MEANS,),
        wrong=_wrong((int(cells[0]), cells[place]) for cells in table for place in counted),
    )


def json(document: Any) -> Parsed:
    """Return the file's out-of-place times, every iteration where `-I 1` kept them."""
    command = tuple(str(each) for each in document.get("args", []))
    if command and "all_reduce" not in command[0]:
        raise not_all_reduce(TOOL, command[0])
    points = tuple(_points(document["results"]))
    if not points:
        raise nothing(TOOL, "times")
    listed = document.get("config", {}).get("devices", [])
    devices = tuple(
        Device(
            rank=int(each["rank"]),
            hostname=str(each["hostname"]),
            name=str(each.get("device_info", "")),
            index=each.get("device"),
        )
        for each in listed
    )
    each_time = any(len(point.time_s) > 1 for point in points)
    return Parsed(
        tool=TOOL,
        workload=Workload.NCCL,
        ranks=len(devices) or None,
        sweep=points,
        devices=devices,
        versions=_version(str(document["nccl_version"])),
        variables=dict(_nccl_variables(document.get("env", []))),
        command=command,
        remarks=() if each_time else (_MEANS,),
        wrong=_wrong(_counted(document["results"])),
    )


def _counted(results: Any) -> Iterator[tuple[int, Any]]:
    """Yield each size with its number of wrong values; null where none was looked for (`-c 0`)."""
    for each in results:
        for way in ("out_of_place", "in_place"):
            yield int(each["size"]), (each.get(way) or {}).get("nwrong")


def _wrong(counted: Iterable[tuple[int, Any]]) -> tuple[str, ...]:
    return tuple(
        f"{count:g} wrong values at {size} bytes" for size, told in counted if (count := number(str(told))) is not None
    )


def _points(results: Any) -> Iterator[SweepPoint]:
    for each in results:
        way = "out_of_place" if each.get("out_of_place") else "in_place"
        iterations = (each.get(f"{way}_per_iter") or {}).get("times_us")
        times = iterations or [each[way].get("time", each[way].get("cpu_time"))]
        seconds = tuple(value * 1e-6 for time in times if (value := number(str(time))) is not None)
        if int(each["size"]) > 0 and seconds:
            yield SweepPoint(size_bytes=int(each["size"]), time_s=seconds)


def _nccl_variables(environment: Any) -> Iterator[tuple[str, str]]:
    """Yield NCCL's own variables. The file holds the whole environment, and nobody knows what secrets are in it."""
    for each in environment:
        name, _, value = str(each).partition("=")
        if name.startswith("NCCL_"):
            yield name, value


def _version(code: str) -> dict[str, str]:
    """Return NCCL's version from its number: 21805 is 2.18.5, and before 2.9 one digit less, 2804 is 2.8.4."""
    if not code.isdigit() or int(code) == 0:
        return {}
    value = int(code)
    major, rest = divmod(value, 10_000 if value >= 10_000 else 1000)  # noqa: PLR2004 - NCCL_VERSION's two forms
    return {"nccl": f"{major}.{rest // 100}.{rest % 100}"}
