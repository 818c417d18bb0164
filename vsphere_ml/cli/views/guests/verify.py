"""What was seen of finished nodes, fact by fact."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from rich.console import Group

from vsphere_ml.cli.views.layout.envelope import as_data
from vsphere_ml.cli.views.layout.text import line, table
from vsphere_ml.core.order import fold_names
from vsphere_ml.flows.guests.verify import MANY_ANSWERS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType
    from rich.text import Text

    from vsphere_ml.cli.views.layout.envelope import ErrorFields
    from vsphere_ml.flows.guests.verify import Verification
    from vsphere_ml.guest.facts.verify import Evidence

_FEW = 2  # nodes whose facts are listed one by one
STYLES = {"ok": "green", "warning": "yellow", "error": "red", "unknown": "yellow"}


class VerifyData(TypedDict):
    """What was seen of each node, and the errors of nodes that could not be asked."""

    cluster: str
    verified: bool
    facts: tuple[Evidence, ...]
    unreachable: dict[str, ErrorFields]


def text(seen: Verification, *, commands: bool = False) -> Group:
    """Return one line a fact and node; with `commands` also what to type to see it again."""
    return Group(*_parts(seen, commands=commands))


def data(seen: Verification) -> VerifyData:
    """Return the facts' fields."""
    return {
        "cluster": seen.cluster,
        "verified": seen.error is None,
        "facts": seen.evidence,
        "unreachable": {name: as_data(error) for name, error in seen.errors.items()},
    }


def _parts(seen: Verification, *, commands: bool) -> Iterator[RenderableType]:
    titles = ("NODE", "FACT", "STATE", "EVIDENCE", *(("COMMAND",) if commands else ()))
    if seen.evidence:
        yield table(titles, (_row(*each, commands=commands) for each in _fold(seen.evidence, every=commands)))
    if seen.error is None:
        lab = " in the lab, where stand-ins answer for hardware" if any(each.lab for each in seen.evidence) else ""
        yield line((f"{seen.cluster} is verified{lab}", "green"), _count_other_facts(seen))


def _count_other_facts(seen: Verification) -> str:
    warned, unknown = (sum(each.severity == state for each in seen.evidence) for state in ("warning", "unknown"))
    warnings = f"; {warned} warning{'' if warned == 1 else 's'}" if warned else ""
    return warnings + (f"; {unknown} fact{'' if unknown == 1 else 's'} unknown" if unknown else "")


def _fold(evidence: Sequence[Evidence], *, every: bool) -> Iterator[tuple[Evidence, str, str]]:
    """Yield facts with the nodes they are true of, and what was seen: three nodes and more alike in one row.

    Where all is `ok` and yet different, or much of it, only an example is shown, unless `every` one is wanted.
    """
    if len({each.target for each in evidence}) <= _FEW:
        yield from ((each, each.target, each.message) for each in evidence)
        return
    facts: dict[tuple[str, str], dict[str, list[Evidence]]] = {}
    for each in evidence:
        facts.setdefault((each.fact, each.severity), {}).setdefault(each.message, []).append(each)
    for (_, verdict), alike in facts.items():
        if len(alike) > (_FEW if verdict == "ok" else MANY_ANSWERS) and not every:
            found = [each for group in alike.values() for each in group]
            yield found[0], _names(found), f"{len(alike)} different answers, such as {found[0].message}"
        else:
            yield from ((group[0], _names(group), group[0].message) for group in alike.values())


def _names(evidence: Sequence[Evidence]) -> str:
    return ", ".join(fold_names(each.target for each in evidence))


def _row(each: Evidence, nodes: str, seen: str, *, commands: bool) -> tuple[str | Text, ...]:
    state = each.severity
    row = (nodes, each.fact, line((state, STYLES[state])), seen)
    return (*row, each.command) if commands else row
