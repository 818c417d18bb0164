"""What vCenter knows of a template, as a table, as data, and as the error of what is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group

from vsphere_ml.cli.views.layout.hints import hint_line
from vsphere_ml.cli.views.layout.text import table
from vsphere_ml.core.diagnostics import Diagnostic, Severity
from vsphere_ml.core.errors import NotPossible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from vsphere_ml.core.errors import VsmlError

TITLES = ("TEMPLATE", "VERDICT", "OBSERVED")
STATES = {
    Severity.OK: ("ready", "green"),
    Severity.ERROR: ("missing", "red"),
    Severity.UNKNOWN: ("not known from vCenter", "yellow"),
}


def text(above: RenderableType, facts: Sequence[Diagnostic]) -> Group:
    rows = [(fact.target, STATES[fact.severity], fact.message) for fact in facts]
    hints = (hint_line(fact.hint, f"   {fact.target}: ") for fact in facts if fact.hint)
    return Group(above, table(TITLES, rows), *hints)


def errors(name: str, facts: Sequence[Diagnostic]) -> tuple[VsmlError, ...]:
    """Return the error of a template that is not ready; none where nothing is missing."""
    missing = [fact for fact in facts if fact.severity is Severity.ERROR]
    if not missing:
        return ()
    return (
        NotPossible(
            f"template `{name}`: {', '.join(fact.target for fact in missing)} missing",
            code="source.not-ready",
            target=name,
            hint=missing[0].hint,
            details=tuple(str(fact) for fact in missing),
        ),
    )
