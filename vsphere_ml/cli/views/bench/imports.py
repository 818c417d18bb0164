"""What was read of other tools' logs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group

from vsphere_ml.bench.model.titles import Titles
from vsphere_ml.cli.views.layout.text import line, table
from vsphere_ml.core.order import count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vsphere_ml.bench.model.record import Run


def text(runs: Sequence[Run]) -> Group:
    """Return a line a log, then what none of them has."""
    titles = Titles.of(run.configuration for run in runs)
    rows = ((run.source, titles(run.configuration), str(run.launch), _describe_figures(run)) for run in runs)
    diagnostics = dict.fromkeys((each.target, each.message) for run in runs for each in run.diagnostics)
    return Group(
        table(("TOOL", "CONFIGURATION", "LAUNCH", "HOLDS"), rows),
        *(line((f"{target}: ", "bold"), message) for target, message in diagnostics),
    )


def _describe_figures(run: Run) -> str:
    if run.steps is not None:
        return count(len(run.steps.step_s[0]), "step time")
    return count(len(run.sweep), "message size") if run.sweep else count(len(run.link_results), "link")
