"""A baseline: the launches of a record that later ones are held against, and what is asked of those."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

from vsphere_ml.bench.analysis.metric import BUS, LINK, launch_figures, metric
from vsphere_ml.bench.analysis.study import groups
from vsphere_ml.bench.gate.thresholds import OF_BOUND, SCHEMA, TOLERANCE
from vsphere_ml.bench.model import figures
from vsphere_ml.bench.model.record import Outcome, Verdict, Workload
from vsphere_ml.bench.model.titles import Titles
from vsphere_ml.bench.records import store
from vsphere_ml.bench.stats.estimate import across_launches
from vsphere_ml.bench.stats.ratio import margin_of_no_change
from vsphere_ml.core.errors import ConfigError, NotPossible
from vsphere_ml.core.hints import CommandLine

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from vsphere_ml.bench.model.record import Run

LAUNCHES = 5  # that `vsml bench` makes by default
FEWEST = 2  # launches of a configuration: of one alone nobody knows how launches differ
THRESHOLDS = "thresholds.toml"


def choose_runs(runs: Sequence[Run], fewest: int = FEWEST, again: str = "") -> tuple[Run, ...]:
    """Return the runs that make a baseline: complete, measured, with no proof that failed.

    `again` is the command that adds the launches which are missing. NotPossible `bench.no-baseline` when there is none,
    or a configuration has fewer launches than `fewest`.
    """
    good = tuple(
        run for run in runs if run.outcome is Outcome.COMPLETE and _has_no_failed_proof(run) and metric(run) is not None
    )
    titles = Titles.of(run.configuration for run in runs)
    few = [f"{titles(same[0].configuration)}: {len(same)} of {fewest}" for same in groups(good) if len(same) < fewest]
    if not good or few:
        raise NotPossible(
            "the record makes no baseline" + ("" if good else ": it has no complete launch with a figure"),
            code="bench.no-baseline",
            details=tuple(few),
            hint=again or CommandLine(f"vsml bench --repeats {max(fewest, LAUNCHES)}"),
        )
    return good


def make(runs: Sequence[Run], folder: Path) -> tuple[Path, ...]:
    """Write the baseline into a new folder and return its files; ConfigError `baseline.exists` when one is there."""
    if folder.exists() and any(folder.iterdir() if folder.is_dir() else [folder]):
        raise ConfigError(
            f"{folder} is there and not empty",
            code="baseline.exists",
            target=str(folder),
            hint="name a new folder: a baseline is not mixed with another",
        )
    files = tuple(store.write(run, folder) for run in runs)
    text = folder / THRESHOLDS
    text.write_text(thresholds(runs), encoding="utf-8")
    return (*files, text)


def thresholds(runs: Sequence[Run]) -> str:
    """Return a file of thresholds to begin with: the defaults, and each configuration's figure as a comment."""
    return "\n".join(_lines(runs)) + "\n"


def _lines(runs: Sequence[Run]) -> Iterator[str]:
    yield f'schema = "{SCHEMA}"'
    yield "\n# What `vsml bench gate` asks of each configuration. A table without a selector is for all of them, and of"
    yield "# each limit the last table that applies counts. Selectors: workload, model, nodes, ranks, transport,"
    yield "# gradients, launcher, backend. `at_least` is in samples/s for training, in bytes/s for sweeps and links."
    yield f"\n[[threshold]]\nbelow_baseline_percent = {TOLERANCE * 100:g}"
    titles = Titles.of(run.configuration for run in runs)
    for same in groups(runs):
        asked = same[0].configuration
        yield f"\n# {titles(asked)}: {_describe_estimate(same)}\n[[threshold]]"
        yield f'workload = "{asked.workload}"\nnodes = {asked.nodes}\ntransport = "{asked.transport}"'
        if asked.model:
            yield f'model = {json.dumps(asked.model)}\ngradients = "{asked.gradients}"'
        yield f"below_baseline_percent = {_tolerance_percent(same):g}\n# at_least = 0"
        training = asked.workload is Workload.TRAIN
        yield "# of_ceiling_percent = 80" if training else f"# of_bound_percent = {OF_BOUND * 100:g}"


def _tolerance_percent(same: Sequence[Run]) -> float:
    """Return how much slower later launches may be: 5 %, or more where these differ too much to show so little."""
    within = margin_of_no_change(launch_figures(same))
    return max(TOLERANCE * 100, math.ceil(within * 1000) / 10)


def _describe_estimate(same: Sequence[Run]) -> str:
    measured = [each for run in same if (each := metric(run)) is not None]
    estimate = across_launches([value for _, value in measured])
    name = measured[0][0]
    value = figures.bandwidth(estimate.value) if name in {BUS, LINK} else f"{figures.number(estimate.value)} {name}"
    return f"{value} {figures.plus_minus(estimate)}, {estimate.basis}"


def _has_no_failed_proof(run: Run) -> bool:
    return all(each.verdict is not Verdict.NO for each in run.proofs)
