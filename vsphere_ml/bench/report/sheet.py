"""A record's figures as CSV: one line a launch and figure, so that any spreadsheet can take them apart."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

from vsphere_ml.bench.sweeps import sizes
from vsphere_ml.bench.training import training

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from vsphere_ml.bench.record import Run

TITLES = (
    *("run_id", "started", "outcome", "lab", "synthetic", "workload", "model", "nodes", "ranks", "transport", "launch"),
    *("figure", "size_bytes", "value"),
)
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def sheet(runs: Sequence[Run]) -> str:
    """Return the table. Units stand in the figures' names."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(TITLES)
    for run in runs:
        writer.writerows([*map(_cell, _about(run)), *each] for each in _figures(run))
    return text.getvalue()


def _about(run: Run) -> tuple[object, ...]:
    asked = run.configuration
    return (
        *(run.run_id, run.started, run.outcome.value, run.lab, run.synthetic, asked.workload.value, asked.model),
        *(asked.nodes, asked.ranks, asked.transport.value, run.launch),
    )


def _figures(run: Run) -> Iterator[tuple[str, object, object]]:
    told = training(run)
    if told is not None:
        if told.samples_per_s is not None:
            yield "samples_per_s", "", told.samples_per_s.value
        yield "step_mean_s", "", told.summary.mean_s
        yield "step_median_s", "", told.summary.median_s
        yield "step_p95_s", "", told.summary.p95_s
        yield "warm_up_steps", "", told.warm_up.dropped
    for size in sizes(run.sweep, run.configuration.ranks):
        yield "allreduce_median_s", size.size_bytes, size.median_s
        yield "allreduce_bus_bytes_per_s", size.size_bytes, size.bus_bytes_per_s
    for link in run.link_results:
        yield f"{_cell(link.tool)}_bytes_per_s {_cell(link.sender)} {_cell(link.receiver)}", "", link.bytes_per_s


def _cell(value: object) -> object:
    """Return a cell that no spreadsheet takes for a formula."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
