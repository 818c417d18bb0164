"""`vsml bench compare`: which of two records is faster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from vsphere_ml.cli.bench.records.record import First, Second
from vsphere_ml.cli.options import command
from vsphere_ml.cli.terminal import Answer, Terminal

if TYPE_CHECKING:
    from vsphere_ml.bench.analysis.compare import Comparison

Force = Annotated[bool, typer.Option("--force", help="Compare also what was not measured alike.")]


@command
def compare(_terminal: Terminal, first: First, second: Second, *, force: Force = False) -> Answer["Comparison"]:
    """Say whether B is faster or slower than A, with the interval of the ratio, or that nothing can be said.

    Each launch counts as one figure; steps of one launch depend on each other. Other configurations are refused.

    Example: `vsml bench compare bench/monday bench/tuesday`
    """
    from vsphere_ml.bench.analysis import compare as comparing
    from vsphere_ml.bench.records import store
    from vsphere_ml.cli.views.bench import compare as view

    made = comparing.compare(store.read(first), store.read(second), force=force)
    return Answer(text=view.text(made), data=made)
