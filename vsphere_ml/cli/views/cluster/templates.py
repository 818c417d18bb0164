"""What vCenter knows of a template, as a table, as data, and as the error of what is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Group

from vsphere_ml.cli.views.layout.envelope import plain_value
from vsphere_ml.cli.views.layout.text import table
from vsphere_ml.core.errors import NotPossible
from vsphere_ml.core.rules.template_facts import TemplateVerdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from vsphere_ml.core.errors import VsmlError
    from vsphere_ml.core.rules.template_facts import TemplateFact

TITLES = ("TEMPLATE", "VERDICT", "OBSERVED", "HINT")
STYLES = {TemplateVerdict.READY: "green", TemplateVerdict.MISSING: "red", TemplateVerdict.UNKNOWN: "yellow"}


def text(above: RenderableType, facts: Sequence[TemplateFact]) -> Group:
    rows = [(fact.name, (fact.verdict.value, STYLES[fact.verdict]), fact.observed, fact.hint) for fact in facts]
    return Group(above, table(TITLES, rows))


def data(facts: Sequence[TemplateFact]) -> list[dict[str, Any]]:
    return [plain_value(fact) for fact in facts]


def errors(name: str, facts: Sequence[TemplateFact]) -> tuple[VsmlError, ...]:
    """Return the error of a template that is not ready; none where nothing is missing."""
    missing = [fact for fact in facts if fact.verdict is TemplateVerdict.MISSING]
    if not missing:
        return ()
    return (
        NotPossible(
            f"template `{name}`: {', '.join(fact.name for fact in missing)} missing",
            code="source.not-ready",
            target=name,
            hint=missing[0].hint,
            details=tuple(f"{fact.name}: {fact.observed}" for fact in missing),
        ),
    )
