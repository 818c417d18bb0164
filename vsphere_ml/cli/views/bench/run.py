"""What a benchmark came to: its figures, what holds them up, and what is proven of each launch."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, TypedDict

from rich.console import Group

from vsphere_ml.bench.analysis.explain import explain
from vsphere_ml.bench.analysis.study import study
from vsphere_ml.bench.model.record import Outcome, Verdict
from vsphere_ml.bench.model.titles import Titles
from vsphere_ml.cli.terminal import Answer
from vsphere_ml.cli.views.bench import explain as explained
from vsphere_ml.cli.views.layout.text import line, table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from rich.console import RenderableType

    from vsphere_ml.bench.launch.matrix import PlannedLaunch
    from vsphere_ml.bench.model.record import Run
    from vsphere_ml.flows.bench.series import BenchResult


class BenchRunData(TypedDict):
    """The launches of a benchmark, its folder, and those that were not begun, since guests could not be measured in."""

    cluster: str
    record: Path
    runs: tuple[Run, ...]
    not_started: tuple[PlannedLaunch, ...]


def answer(done: BenchResult) -> Answer[BenchRunData]:
    """Return the command's answer; its status is the first error's."""
    return Answer(
        text=text(done),
        data={
            "cluster": done.cluster,
            "record": done.folder,
            "runs": done.runs,
            "not_started": done.not_started,
        },
        status=done.errors[0].status if done.errors else 0,
        errors=done.errors,
    )


def text(done: BenchResult) -> Group:
    """Return what was proven of each launch, the figures, and what to change first."""
    return Group(*_parts(done))


def _parts(done: BenchResult) -> Iterator[RenderableType]:
    asked = [*(run.configuration for run in done.runs), *(each.configuration for each in done.not_started)]
    titles = Titles.of(asked)
    yield table(("CONFIGURATION", "LAUNCHES", "PROVEN"), _fold_launches(done.runs, titles))
    if any(run.outcome is Outcome.COMPLETE for run in done.runs):
        seen = study(done.runs)
        yield explained.text(seen, explain(seen))
    elif any(run.lab for run in done.runs):
        yield line(("lab: ", "yellow"), "these guests share one machine; no figure here is a claim about hardware")
    for each in done.not_started:
        yield line(("not begun: ", "yellow"), titles(each.configuration), f", launch {each.launch}")
    yield line(f"the record is in {done.folder}")
    yield line("   shown again by: ", (f"vsml bench explain {done.folder}", "bold"))


def _fold_launches(runs: Sequence[Run], titles: Titles) -> Iterator[tuple[str, str, str]]:
    """Yield a row for all launches of a configuration of which the same is proven."""
    alike = Counter((titles(run.configuration), summarize_proofs(run)) for run in runs)
    yield from ((title, str(number), proven) for (title, proven), number in alike.items())


def summarize_proofs(run: Run) -> str:
    """Return the proofs in few words; what is unknown is said to be."""
    if run.outcome is not Outcome.COMPLETE:
        return f"{run.outcome.value}: {run.reason}"
    words = {Verdict.YES: "", Verdict.NO: "NOT ", Verdict.UNKNOWN: "unknown: "}
    named = (f"{words[each.verdict]}{each.name.replace('_', ' ')}" for each in run.proofs)
    return ", ".join(named) or "nothing to prove"
