"""What was seen of finished nodes, fact by fact."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Group

from vsphere_ml.cli.views.layout.envelope import as_data, plain
from vsphere_ml.cli.views.layout.text import line, table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType
    from rich.text import Text

    from vsphere_ml.flows.guests.verify import Verified
    from vsphere_ml.guest.facts.verify import Evidence

STYLES = {"ok": "green", "warning": "yellow", "lacking": "red", "unknown": "yellow"}


def text(seen: Verified, *, commands: bool = False) -> Group:
    """Return one line a fact and node; with `commands` also what to type to see it again."""
    return Group(*_parts(seen, commands=commands))


def data(seen: Verified) -> dict[str, Any]:
    """Return the facts' fields."""
    return {
        "cluster": seen.cluster,
        "verified": seen.error is None,
        "facts": plain(seen.evidence),
        "unasked": {name: as_data(error) for name, error in seen.errors.items()},
    }


def _parts(seen: Verified, *, commands: bool) -> Iterator[RenderableType]:
    titles = ("NODE", "FACT", "STATE", "EVIDENCE", *(("COMMAND",) if commands else ()))
    if seen.evidence:
        yield table(titles, (_row(each, commands=commands) for each in seen.evidence))
    if seen.error is None:
        lab = " in the lab, where stand-ins answer for hardware" if any(each.lab for each in seen.evidence) else ""
        yield line((f"{seen.cluster} is verified{lab}", "green"), _besides(seen))


def _besides(seen: Verified) -> str:
    warned, unknown = (sum(each.verdict.value == state for each in seen.evidence) for state in ("warning", "unknown"))
    warnings = f"; {warned} warning{'' if warned == 1 else 's'}" if warned else ""
    return warnings + (f"; {unknown} fact{'' if unknown == 1 else 's'} could not be told" if unknown else "")


def _row(each: Evidence, *, commands: bool) -> tuple[str | Text, ...]:
    state = each.verdict.value
    row = (each.node, each.fact, line((state, STYLES[state])), each.evidence)
    return (*row, each.command) if commands else row
