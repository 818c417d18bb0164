"""A study's tables on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.bench.report import tables
from vsphere_ml.bench.report.regimes.regime_tables import describe_order, regime_tables
from vsphere_ml.cli.views.bench.curve import curves
from vsphere_ml.cli.views.layout.text import line, table
from vsphere_ml.core.order import count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType

    from vsphere_ml.bench.analysis.study import Study


def head(seen: Study) -> Iterator[RenderableType]:
    """Yield what the figures come from."""
    cluster = next((run.cluster.name for run in seen.runs if run.cluster is not None), "no cluster")
    launches = count(len(seen.runs), "launch", "launches")
    yield line((f"{cluster}: {launches}", "bold"))


def scaling_table(seen: Study) -> Iterator[RenderableType]:
    """Yield the scaling table, where there is training."""
    if seen.scalings:
        yield _table(tables.scaling(seen))
        yield from curves(seen)


def time_tables(seen: Study) -> Iterator[RenderableType]:
    """Yield where the time of steps goes, and what CPUs were kept from, where that is known."""
    for made in (tables.step_parts(seen), tables.contention(seen)):
        if made.rows:
            yield line((made.heading, "bold"))
            yield _table(made)


def sweep_tables(seen: Study) -> Iterator[RenderableType]:
    """Yield each sweep's table and the line through it."""
    for sweep in seen.sweeps:
        if sweep.configuration.ranks > 1:
            made = tables.all_reduce(sweep)
            yield line((made.heading, "bold"))
            yield _table(made)
            if fitted := tables.describe_fit(sweep):
                yield line(fitted)


def regime_parts(seen: Study) -> Iterator[RenderableType]:
    """Yield training regimes against their bounds, and which is ahead of which, where there are any."""
    for made in regime_tables(seen.regimes):
        yield line((made.heading, "bold"))
        yield _table(made)
    yield from map(line, describe_order(seen.regimes))


def link_table(seen: Study) -> Iterator[RenderableType]:
    """Yield what point-to-point tools measured, where there is any."""
    if seen.links:
        yield _table(tables.links(seen))
    for made in (tables.rails(seen), tables.channels(seen)):
        if made.rows:
            yield line((made.heading, "bold"))
            yield _table(made)


def notes(seen: Study) -> Iterator[RenderableType]:
    """Yield what the record does not hold."""
    for each in tables.notices(seen):
        yield line((each, "yellow" if seen.synthetic else "dim"))


def _table(made: tables.ReportTable) -> RenderableType:
    return table(made.titles, made.rows, made.optional)
