"""The changes of a cluster, the oldest first."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any, TypedDict, cast

from rich.console import Group

from vsphere_ml.cli.views.layout.text import line, table
from vsphere_ml.core.order import count, fold_names
from vsphere_ml.core.plan.describe import noun

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from rich.console import RenderableType
    from rich.text import Text

    from vsphere_ml.cli.wiring.journal import LoggedChange

TITLES = ("TIME", "WHO", "COMMAND", "OBJECT", "CHANGE", "OUTCOME")
OPTIONAL = ("COMMAND", "WHO")
STYLES = {"done": "green", "failed": "red", "unknown": "yellow"}


class LogData(TypedDict):
    """The changes of a cluster that the journal has, the oldest first."""

    journal: Path
    changes: list[LoggedChange]
    unreadable_lines: int


def text(cluster: str, path: Path, entries: Sequence[Mapping[str, Any]], every: int, broken: int) -> Group:
    """Return a line for each change, or for several that are alike, and how many there are in all."""
    return Group(*_parts(cluster, path, entries, every, broken))


def data(path: Path, entries: Sequence[Mapping[str, Any]], broken: int) -> LogData:
    """Return the changes with all their fields."""
    hidden = {"schema", "event", "change"}
    changes = [{key: value for key, value in each.items() if key not in hidden} for each in entries]
    return {"journal": path, "changes": cast("list[LoggedChange]", changes), "unreadable_lines": broken}


def _parts(
    cluster: str, path: Path, entries: Sequence[Mapping[str, Any]], every: int, broken: int
) -> Iterator[RenderableType]:
    if entries:
        yield table(TITLES, _rows(entries), OPTIONAL)
    for each in entries:
        if each["error"] is not None:
            yield line(("   ! ", "red"), f"{each['object']}: {each['error']['message']}")
    yield line(f"{len(entries)} of {count(every, 'change')} to {cluster} from this machine, in {path}")
    if broken:
        yield line((f"{count(broken, 'line')} of the journal cannot be read", "yellow"))


def _rows(entries: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str | Text, ...]]:
    """Yield a row for changes one after another that differ in their objects alone."""
    for (time, who, command, change, outcome), alike in groupby(entries, _describe):
        objects = ", ".join(fold_names(each["object"] for each in alike))
        yield time, who, command, objects, change, line((outcome, STYLES.get(outcome, "")))


def _describe(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """Return when a change began, by UTC, whose it is, and what became of it."""
    time = f"{entry['time'].partition('.')[0]}Z"
    return time, f"{entry['user']}@{entry['machine']}", entry["command"], _change(entry), entry["outcome"]


def _change(entry: Mapping[str, Any]) -> str:
    what = noun(str(entry.get("kind"))) or str(entry["what"])
    return f"{what}: {'; '.join(entry['differences'])}" if entry.get("kind") == "SetSettings" else what
