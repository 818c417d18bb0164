"""`vsml bench gate`: whether a benchmark is good enough to go on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vsphere_ml.cli.bench.record import Records
from vsphere_ml.cli.options import command
from vsphere_ml.cli.terminal import Answer, Terminal

Baseline = Annotated[Path | None, typer.Option(metavar="RECORD", help="The record it must not be slower than.")]
Tolerance = Annotated[
    float, typer.Option(min=0, max=100, metavar="PERCENT", help="How much slower than the baseline it may be.")
]
OfBound = Annotated[
    float | None,
    typer.Option("--of-bound", min=0, max=100, metavar="PERCENT", help="Share of the link an all-reduce must reach."),
]
JUnit = Annotated[Path | None, typer.Option("--junit", metavar="FILE", help="Also write the checks as JUnit XML.")]


@command
def gate(  # noqa: PLR0917 - options
    terminal: Terminal,
    records: Records,
    baseline: Baseline = None,
    tolerance: Tolerance = 5.0,
    of_bound: OfBound = None,
    junit: JUnit = None,
) -> Answer:
    """Pass or fail a record, for CI: against a baseline, against a share of the link, and that no launch failed.

    A regression takes both: a figure beyond the tolerance and an interval that leaves no doubt. Exits with 0 when all
    passes, 6 when something fails, 3 when it cannot be told.

    Example: `vsml bench gate bench/new --baseline bench/old --of-bound 85 --junit gate.xml`
    """
    from vsphere_ml.bench import gate as gating
    from vsphere_ml.bench import store
    from vsphere_ml.bench.junit import xml
    from vsphere_ml.cli.bench.files import write
    from vsphere_ml.cli.views.bench import gate as view

    checks = gating.gate(
        store.read(*records),
        None if baseline is None else store.read(baseline),
        tolerance=tolerance / 100,
        of_bound=None if of_bound is None else of_bound / 100,
    )
    if junit is not None:
        write(junit, xml(checks))
        terminal.say(f"wrote {junit}")
    error = gating.failure(checks)
    return Answer(
        text=view.text(checks),
        data={"checks": list(checks)},
        status=error.status if error else 0,
        errors=(error,) if error else (),
    )
