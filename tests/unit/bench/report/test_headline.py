"""A report's first screen: which verdict it gives, in which colour, and what it says to do."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.unit.bench import synthetic
from vsphere_ml.bench.analysis.explain import explain
from vsphere_ml.bench.analysis.study import BoundsCheck, study
from vsphere_ml.bench.model.record import Outcome, Proof, Verdict
from vsphere_ml.bench.report.actions import COMMANDS, MOST, actions
from vsphere_ml.bench.report.headline import PROOFS, Tone, headline, tiles
from vsphere_ml.core.diagnostics import Diagnostic

if TYPE_CHECKING:
    from vsphere_ml.bench.analysis.study import Study
    from vsphere_ml.bench.model.record import Run, SweepPoint

RECORD = synthetic.record(nodes=3, launches=2)


def scalings_only(existing: BoundsCheck) -> Study:
    """Return the study with its largest configuration standing so to its bracket."""
    seen = study(RECORD)
    *smaller, largest = seen.scalings
    return replace(seen, scalings=(*smaller, replace(largest, bounds_check=existing)))


def without_proof(run: Run, name: str, verdict: Verdict) -> Run:
    proofs = tuple(each for each in run.proofs if each.name != name)
    return replace(run, proofs=(*proofs, Proof(name=name, verdict=verdict)))


def twice_as_long(point: SweepPoint) -> SweepPoint:
    return replace(point, time_s=tuple(2 * each for each in point.time_s))


@pytest.mark.parametrize(
    ("bounds_check", "tone"),
    [(BoundsCheck.INSIDE, Tone.GOOD), (BoundsCheck.BELOW, Tone.BAD), (BoundsCheck.ABOVE, Tone.BAD)],
)
def test_the_largest_configuration_is_judged_by_where_it_lies_in_its_bracket(
    bounds_check: BoundsCheck, tone: Tone
) -> None:
    seen = scalings_only(bounds_check)
    answers = headline(seen)
    bounds = seen.scalings[-1].bounds
    assert bounds is not None
    assert answers.tone is tone
    assert "3 nodes" in answers.text
    assert f"{bounds.floor * 100:.0f} to {bounds.ceiling * 100:.0f} %" in answers.text


@pytest.mark.parametrize("name", PROOFS)
def test_what_is_refuted_stands_above_every_figure(name: str) -> None:
    runs = (*RECORD[:-1], without_proof(RECORD[-1], name, Verdict.NO))
    assert headline(study(RECORD)).tone is not Tone.BAD
    assert headline(study(runs)).tone is Tone.BAD
    assert tiles(study(runs))[-1].tone is Tone.BAD


def test_a_proof_that_is_open_is_named_and_refutes_nothing() -> None:
    runs = (*RECORD[:-1], without_proof(RECORD[-1], "path", Verdict.UNKNOWN))
    before, proofs = tiles(study(RECORD))[-1], tiles(study(runs))[-1]
    assert (before.value, proofs.value, proofs.tone) == ("3 of 4", "2 of 4", Tone.FAIR)
    assert "path" in proofs.detail
    assert "path" not in before.detail
    assert headline(study(runs)) == headline(study(RECORD))


def test_where_nothing_was_measured_that_is_the_verdict() -> None:
    runs = tuple(replace(run, outcome=Outcome.FAILED, reason="no route to host") for run in RECORD)
    answers = headline(study(runs))
    assert answers.tone is Tone.BAD
    assert str(len(runs)) in answers.text


def test_an_all_reduce_alone_is_judged_by_its_share_of_the_link() -> None:
    sweeps = tuple(run for run in RECORD if run.sweep)
    slower = tuple(replace(run, sweep=tuple(twice_as_long(each) for each in run.sweep)) for run in sweeps)
    good, slow = study(sweeps), study(slower)
    assert headline(good).tone is Tone.GOOD
    assert headline(slow).tone is Tone.FAIR
    assert [each.label for each in tiles(slow)] == ["bus bandwidth", "proofs"]


def test_the_tiles_have_throughput_efficiency_bandwidth_and_proofs() -> None:
    text = tiles(study(RECORD))
    assert [each.label for each in text] == ["throughput", "efficiency", "bus bandwidth", "proofs"]
    assert all(re.search(r"\d", each.value) for each in text)


def test_at_most_three_things_are_to_be_done_each_once_and_as_a_command() -> None:
    seen = study(RECORD)
    diagnostics = [
        *explain(seen),
        *explain(seen),
        *(Diagnostic(code=code, target="x", message="y") for code in COMMANDS),
    ]
    text = actions(diagnostics)
    assert len(text) == MOST
    assert len({each.finding.code for each in text}) == MOST
    assert all(each.command.startswith("vsml ") for each in text)


def test_what_nothing_can_be_done_about_is_no_action() -> None:
    assert actions([Diagnostic(code="bench.other", target="x", message="y")]) == ()
