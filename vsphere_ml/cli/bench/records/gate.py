"""`vsml bench gate`: whether a benchmark is good enough to go on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypedDict

import typer

from vsphere_ml.cli.bench.records.record import RecordsOrNewest, baseline_of, or_newest
from vsphere_ml.cli.options import command, option_group
from vsphere_ml.cli.terminal import Answer, Terminal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vsphere_ml.bench.gate.gate import GateCheck
    from vsphere_ml.bench.gate.thresholds import Threshold
    from vsphere_ml.bench.model.record import Run

Baseline = Annotated[
    Path | None,
    typer.Option(
        metavar="RECORD", help="The record it must not be slower than; default: baselines/CLUSTER, where that is."
    ),
]
Tolerance = Annotated[
    float | None,
    typer.Option(min=0, max=100, metavar="PERCENT", help="How much slower than the baseline it may be; default: 5."),
]
OfBound = Annotated[
    float | None,
    typer.Option("--of-bound", min=0, max=100, metavar="PERCENT", help="Share of the link a sweep must reach."),
]
Thresholds = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="What is asked of each configuration; default: thresholds.toml of the baseline."),
]
JUnit = Annotated[Path | None, typer.Option("--junit", metavar="FILE", help="Also write the checks as JUnit XML.")]


class _GateData(TypedDict):
    """What a record was held against, check by check."""

    checks: tuple[GateCheck, ...]


@option_group
class _GateOptions:
    baseline: Baseline = None
    tolerance: Tolerance = None
    of_bound: OfBound = None
    thresholds: Thresholds = None
    junit: JUnit = None


@command
def gate(terminal: Terminal, records: RecordsOrNewest = None, *, given: _GateOptions) -> Answer[_GateData]:
    """Pass or fail results in CI: against a baseline, a share of the bound or a figure; failed launches fail it too.

    A regression needs both: a figure beyond the tolerance and a confidence interval that excludes chance. `--tolerance`
    and `--of-bound` override the thresholds file. Exits with 0 when every check passes, 6 when one fails, 3 when one is
    inconclusive.

    Example: `vsml bench gate bench/new --baseline baselines/train --junit gate.xml`
    """
    from vsphere_ml.bench.gate import gate as gating
    from vsphere_ml.bench.gate.junit import xml
    from vsphere_ml.bench.gate.thresholds import TOLERANCE, Threshold, ThresholdLimits
    from vsphere_ml.bench.records import again, store
    from vsphere_ml.cli.bench.files import write
    from vsphere_ml.cli.views.bench import gate as view

    found = or_newest(records)
    runs = store.read(*found)
    baseline = given.baseline or _usual(runs)
    limits = ThresholdLimits(
        below_baseline=None if given.tolerance is None else given.tolerance / 100,
        of_bound=None if given.of_bound is None else given.of_bound / 100,
    )
    checks = gating.gate(
        runs,
        None if baseline is None else store.read(baseline),
        (
            Threshold(limits=ThresholdLimits(below_baseline=TOLERANCE)),
            *_of_file(given.thresholds, baseline),
            Threshold(limits=limits),
        ),
    )
    if given.junit is not None:
        write(given.junit, xml(checks))
        terminal.say(f"wrote {given.junit}")
    error = gating.failure(checks, lambda launches: again.command(runs, found[0], launches))
    return Answer(
        text=view.text(checks),
        data={"checks": checks},
        status=error.status if error else 0,
        errors=(error,) if error else (),
    )


def _usual(runs: Sequence[Run]) -> Path | None:
    """Return the baseline that `vsml bench baseline make` wrote of this cluster, where it did."""
    folder = baseline_of(runs)
    return folder if folder is not None and folder.is_dir() else None


def _of_file(file: Path | None, baseline: Path | None) -> tuple[Threshold, ...]:
    """Return the thresholds that were named, or those that lie in the baseline's folder."""
    from vsphere_ml.bench.gate.baseline import THRESHOLDS
    from vsphere_ml.bench.gate.thresholds import read
    from vsphere_ml.cli.bench.files import text as content

    if file is None and baseline is not None and (baseline / THRESHOLDS).is_file():
        file = baseline / THRESHOLDS
    return read(content(file), str(file)) if file is not None else ()
