"""The legality table: the list, one rule in full, and the rules that a file breaks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vsphere_ml.cli.views.layout.text import line, lines
from vsphere_ml.cli.views.layout.text import table as aligned
from vsphere_ml.core.rules.sources import SOURCES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rich.text import Text

    from vsphere_ml.cli.views.layout.columns import Columns
    from vsphere_ml.core.rules.rule import Rule, RuleViolation

_SHOWN = 8  # nodes of a rule
STYLES = {"error": "red", "warning": "yellow", "info": "dim"}
TITLES = ("NO", "RULE", "SEVERITY", "VERSIONS", "SAYS")
OURS = "our own reasoning; no document says so"


def table(rules: Iterable[Rule]) -> Columns:
    """Return one line a rule."""
    return aligned(
        TITLES,
        (
            (str(rule.number), rule.id, (rule.severity, STYLES[rule.severity]), rule.versions, rule.summary)
            for rule in rules
        ),
    )


def text(rule: Rule) -> Text:
    """Return a rule in full."""
    return lines(
        line((rule.id, "bold"), f" (rule {rule.number}, ", (rule.severity, STYLES[rule.severity]), ")"),
        line(f"says      {rule.summary}"),
        line(f"versions  {rule.versions}"),
        line(f"enforced  {rule.enforced_by}"),
        *(line("source    " if at == 0 else "          ", source) for at, source in enumerate(_sources(rule))),
    )


def data(rule: Rule) -> dict[str, Any]:
    """Return a rule's fields."""
    return {
        "id": rule.id,
        "number": rule.number,
        "severity": rule.severity.value,
        "summary": rule.summary,
        "versions": rule.versions,
        "enforced_by": rule.enforced_by,
        "sources": list(_sources(rule)),
    }


def diagnostic_lines(diagnostics: Iterable[RuleViolation]) -> Iterator[Text]:
    """Yield a line for each rule that is broken."""
    for each in diagnostics:
        severity = (f"{each.severity}: ", STYLES[each.severity])
        yield line(severity, f"{_some(each.nodes)}: {each.words} ", (f"(vsml rules why {each.rule})", "dim"))


def _some(nodes: Sequence[str]) -> str:
    """Return the names, or of very many the first and the last and how many there are, as `check` folds its table."""
    return (
        ", ".join(nodes) if len(nodes) <= _SHOWN else f"{nodes[0]} … {nodes[-1]} ({len(nodes)}; `-o json` names them)"
    )


def broken_data(diagnostics: Iterable[RuleViolation]) -> list[dict[str, Any]]:
    return [
        {"rule": each.rule, "severity": each.severity.value, "nodes": list(each.nodes), "message": each.words}
        for each in diagnostics
    ]


def _sources(rule: Rule) -> tuple[str, ...]:
    return tuple(SOURCES[key] for key in rule.sources) or (OURS,)
