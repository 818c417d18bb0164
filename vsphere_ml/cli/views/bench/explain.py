"""What holds a benchmark up, the most important first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group

from vsphere_ml.bench.analysis.summary import StudyFigures, figures_of
from vsphere_ml.cli.views.bench.study import (
    head,
    link_table,
    notes,
    regime_parts,
    scaling_table,
    sweep_tables,
    time_tables,
)
from vsphere_ml.cli.views.layout.hints import hint_line
from vsphere_ml.cli.views.layout.text import line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from vsphere_ml.bench.analysis.study import Study
    from vsphere_ml.core.diagnostics import Diagnostic


class ExplainData(StudyFigures):
    """What holds a benchmark up, the most important first, and the figures that it is seen in."""

    diagnostics: Sequence[Diagnostic]


def text(seen: Study, diagnostics: Sequence[Diagnostic]) -> Group:
    """Return the figures, then what they mean."""
    return Group(*_parts(seen, diagnostics))


def data(seen: Study, diagnostics: Sequence[Diagnostic]) -> ExplainData:
    """Return the remarks, and the figures they are about without each launch's steps."""
    return {"diagnostics": diagnostics, **figures_of(seen)}


def _parts(seen: Study, diagnostics: Sequence[Diagnostic]) -> Iterator[RenderableType]:
    yield from head(seen)
    yield from scaling_table(seen)
    yield from time_tables(seen)
    yield from sweep_tables(seen)
    yield from regime_parts(seen)
    yield from link_table(seen)
    if not diagnostics:
        yield line(("nothing in the record holds it up", "green"))
    for number, each in enumerate(diagnostics, start=1):
        yield line((f"{number}. {each.target}", "bold"), f": {each.message}")
        if each.hint:
            yield hint_line(each.hint, "     ")
    yield from notes(seen)
