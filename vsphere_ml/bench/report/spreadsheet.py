"""A record's figures as CSV: one line a launch and figure, so that any spreadsheet can take them apart."""

from __future__ import annotations

import csv
import io
import re
from typing import TYPE_CHECKING

from vsphere_ml.bench.analysis.training import training
from vsphere_ml.bench.model.record import Workload
from vsphere_ml.bench.network.sweeps import collective, sizes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from vsphere_ml.bench.analysis.training import Training
    from vsphere_ml.bench.model.record import Run
    from vsphere_ml.bench.network.sweeps import Size

TITLES = (
    *("run_id", "started", "outcome", "lab", "synthetic", "workload", "model", "nodes", "ranks", "transport", "launch"),
    *("figure", "size_bytes", "value"),
    # The same figure by the name and in the unit that SuperBench's rules know: GB/s, µs, ms, samples/s.
    *("superbench_metric", "superbench_value"),
)
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def sheet(runs: Sequence[Run]) -> str:
    """Return the table. Units stand in the figures' names."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(TITLES)
    for run in runs:
        writer.writerows([*map(_cell, _run_cells(run)), *each] for each in _figures(run))
    return text.getvalue()


def _run_cells(run: Run) -> tuple[object, ...]:
    asked = run.configuration
    return (
        *(run.run_id, run.started, run.outcome.value, run.lab, run.synthetic, asked.workload.value, asked.model),
        *(asked.nodes, asked.ranks, asked.transport.value, run.launch),
    )


def _figures(run: Run) -> Iterator[tuple[object, ...]]:
    answers = training(run)
    if answers is not None:
        yield from _of_training(run, answers)
    bench = f"{'nccl' if run.configuration.workload is Workload.NCCL else 'horovod'}-bw"
    for size in sizes(run.sweep, run.configuration.ranks, collective(run.configuration)):
        name = f"{bench}/allreduce_{size.size_bytes}"
        yield "allreduce_median_s", size.size_bytes, size.median_s, f"{name}_time", size.median_s * 1e6
        bandwidth = size.bus_bytes_per_s
        yield "allreduce_bus_bytes_per_s", size.size_bytes, bandwidth, f"{name}_busbw", bandwidth / 1e9
        yield "allreduce_bytes_per_s", size.size_bytes, *_algorithm(size, name)
    for link in run.link_results:
        figure = f"{_cell(link.tool)}_bytes_per_s {_cell(link.sender)} {_cell(link.receiver)}"
        name = f"link-bw/{_part(link.tool)}_{_part(link.sender)}_{_part(link.receiver)}_bw"
        yield figure, "", link.bytes_per_s, name, link.bytes_per_s / 1e9


def _of_training(run: Run, training: Training) -> Iterator[tuple[object, ...]]:
    asked = run.configuration
    name = f"horovod-train/{_part(asked.model or asked.workload)}_{asked.gradients}_train"
    if training.samples_per_s is not None:
        rate = training.samples_per_s.value
        yield "samples_per_s", "", rate, f"{name}_throughput", rate
    yield "step_mean_s", "", training.summary.mean_s, f"{name}_step_time", training.summary.mean_s * 1e3
    yield "step_median_s", "", training.summary.median_s, f"{name}_step_time_50", training.summary.median_s * 1e3
    yield "step_p95_s", "", training.summary.p95_s, f"{name}_step_time_95", training.summary.p95_s * 1e3
    yield "warm_up_steps", "", training.warm_up.dropped, "", ""


def _algorithm(size: Size, name: str) -> tuple[object, ...]:
    bandwidth = size.algorithm_bytes_per_s
    return bandwidth, f"{name}_algbw", bandwidth / 1e9


def _part(text: str) -> str:
    """Return text as a part of a metric's name, which has no blanks, commas or slashes."""
    return re.sub(r"[^A-Za-z0-9.-]+", "_", text)


def _cell(value: object) -> object:
    """Return a cell that no spreadsheet takes for a formula."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
