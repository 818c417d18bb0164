"""The legality table: the list, one rule in full, and the rules that a file breaks."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from vsphere_ml.cli.views.layout.text import line, lines
from vsphere_ml.cli.views.layout.text import table as aligned
from vsphere_ml.core.rules.sources import SOURCES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rich.text import Text

    from vsphere_ml.cli.views.layout.columns import Columns
    from vsphere_ml.core.diagnostics import Diagnostic, Severity
    from vsphere_ml.core.rules.rule import Rule

STYLES = {"error": "red", "warning": "yellow", "info": "dim"}
TITLES = ("NO", "RULE", "SEVERITY", "VERSIONS", "SAYS")
OPTIONAL = ("VERSIONS", "SEVERITY")
OURS = "our own reasoning; no document says so"


class RuleData(TypedDict):
    """A rule: what it says, from which versions on it holds, who keeps it, and the documents that it comes from."""

    id: str
    number: int
    severity: Severity
    summary: str
    versions: str
    enforced_by: str
    sources: tuple[str, ...]


def table(rules: Iterable[Rule]) -> Columns:
    """Return one line a rule."""
    return aligned(
        TITLES,
        (
            (str(rule.number), rule.id, (rule.severity, STYLES[rule.severity]), rule.versions, rule.summary)
            for rule in rules
        ),
        OPTIONAL,
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


def data(rule: Rule) -> RuleData:
    """Return a rule's fields."""
    return {
        "id": rule.id,
        "number": rule.number,
        "severity": rule.severity,
        "summary": rule.summary,
        "versions": rule.versions,
        "enforced_by": rule.enforced_by,
        "sources": _sources(rule),
    }


def diagnostic_lines(diagnostics: Iterable[Diagnostic]) -> Iterator[Text]:
    """Yield a line for each rule that is broken."""
    for each in diagnostics:
        yield line((f"{each.severity}: ", STYLES[each.severity]), f"{each} ", (f"(vsml rules why {each.code})", "dim"))


def _sources(rule: Rule) -> tuple[str, ...]:
    return tuple(SOURCES[key] for key in rule.sources) or (OURS,)
