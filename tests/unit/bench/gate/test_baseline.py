"""A baseline, the thresholds beside it, and what a gate makes of both."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.unit.bench import synthetic
from vsphere_ml.bench.analysis.metric import metric
from vsphere_ml.bench.gate import baseline, thresholds
from vsphere_ml.bench.gate.gate import GateCheck, failure, gate
from vsphere_ml.bench.model.record import Outcome, Proof, Verdict
from vsphere_ml.bench.records import store
from vsphere_ml.core.diagnostics import Severity
from vsphere_ml.core.errors import ConfigError, NotPossible

if TYPE_CHECKING:
    from pathlib import Path

    from tests.golden import Golden
    from vsphere_ml.bench.model.record import Run

RECORD = synthetic.record(nodes=2, launches=3)
HEAD = f'schema = "{thresholds.SCHEMA}"\n'


def of(text: str) -> tuple[thresholds.Threshold, ...]:
    return thresholds.read(HEAD + text, "thresholds.toml")


def kinds(checks: tuple[GateCheck, ...], kind: str) -> list[Severity]:
    return [each.severity for each in checks if each.kind == kind]


def test_a_baseline_passes_against_itself_by_the_thresholds_it_wrote(tmp_path: Path) -> None:
    made = tmp_path / "base"
    assert len(baseline.make(baseline.choose_runs(RECORD), made)) == len(RECORD) + 1
    text = thresholds.read((made / baseline.THRESHOLDS).read_text(), "t")
    again = synthetic.record(nodes=2, launches=3, seed=2)
    checks = gate(again, store.read(made), text)
    assert kinds(checks, "baseline") == [Severity.OK] * 3
    assert failure(checks) is None


def test_what_is_not_complete_or_not_proven_is_in_no_baseline() -> None:
    wrong = Proof(name="in_sync", verdict=Verdict.NO)
    bad = replace(RECORD[0], outcome=Outcome.FAILED), replace(RECORD[1], proofs=(wrong,))
    assert baseline.choose_runs((*bad, *RECORD)) == RECORD
    with pytest.raises(NotPossible) as refused:
        baseline.choose_runs(bad)
    assert refused.value.code == "bench.no-baseline"


def test_a_configuration_with_one_launch_is_refused_and_named(golden: Golden) -> None:
    with pytest.raises(NotPossible) as refused:
        baseline.choose_runs(RECORD[:-1], fewest=3)
    golden(refused.value.details)


def test_a_baseline_is_not_mixed_with_another(tmp_path: Path) -> None:
    baseline.make(RECORD, tmp_path / "base")
    with pytest.raises(ConfigError) as refused:
        baseline.make(RECORD, tmp_path / "base")
    assert refused.value.code == "baseline.exists"


@pytest.mark.parametrize(("share", "passed"), [(0.9, Severity.OK), (1.0, Severity.UNKNOWN), (1.2, Severity.ERROR)])
def test_a_figure_of_ones_own_is_held_against_the_interval(share: float, passed: Severity) -> None:
    launches = tuple(run for run in RECORD if run.steps and run.configuration.nodes == 1)
    middle = sorted(texts[1] for run in launches if (texts := metric(run)))[1]
    asked = of(f'[[threshold]]\nworkload = "train"\nnodes = 1\nat_least = {middle * share}\n')
    assert kinds(gate(launches, None, asked), "absolute") == [passed]


def test_training_is_held_against_its_ceiling_and_a_sweep_against_the_link() -> None:
    asked = "[[threshold]]\nof_ceiling_percent = {0}\nof_bound_percent = {0}\n"
    assert kinds(gate(RECORD, None, of(asked.format(50))), "bound") == [Severity.OK] * 2
    assert kinds(gate(RECORD, None, of(asked.format(99.9))), "bound") == [Severity.ERROR] * 2


def test_of_each_limit_the_last_threshold_that_applies_counts() -> None:
    text = of(
        "[[threshold]]\nbelow_baseline_percent = 5\nat_least = 1\n"
        '[[threshold]]\nworkload = "train"\nbelow_baseline_percent = 9\n'
    )
    found = thresholds.limits(text, RECORD[0].configuration)
    assert (found.below_baseline, found.at_least) == (0.09, 1)


def test_a_threshold_that_is_for_nothing_in_the_record_does_not_pass() -> None:
    checks = gate(RECORD, None, of('[[threshold]]\nmodel = "resnet5O"\nat_least = 1\n'))
    assert kinds(checks, "threshold") == [Severity.UNKNOWN]
    error = failure(checks)
    assert error is not None
    assert error.status == 3


def test_a_configuration_that_the_record_lacks_does_not_pass(golden: Golden) -> None:
    checks = gate(tuple(run for run in RECORD if run.steps), RECORD, of("[[threshold]]\nbelow_baseline_percent = 5\n"))
    golden([each.target for each in checks if each.severity is Severity.UNKNOWN])


@pytest.mark.parametrize(
    "text",
    [
        "[[threshold]",
        f"[[threshold]]\nat_least = {'9' * 5000}\n",
        f"[[threshold]]\nbelow_baseline_percent = 1{'0' * 400}\n",
        f"[[threshold]]\nat_least = {'[' * 5000}\n",
        "",
        "[[threshold]]\n",
        "[[threshold]]\nbelow_baselin_percent = 5\n",
        "[[threshold]]\nat_least = nan\n",
        '[[threshold]]\nat_least = 1\nnodes = "2"\n',
        "limit = 1\n",
    ],
)
def test_a_file_that_is_wrong_is_told_with_what_is(text: str, golden: Golden) -> None:
    with pytest.raises(ConfigError) as refused:
        of(text)
    assert refused.value.code == "thresholds.unreadable"
    golden(each.message for each in refused.value.problems)


def test_a_file_without_a_schema_is_refused() -> None:
    with pytest.raises(ConfigError) as refused:
        thresholds.read("[[threshold]]\nat_least = 1\n", "t")
    assert refused.value.problems[0].message.startswith("schema =")


def test_a_launch_that_was_cut_keeps_the_gate_shut_until_it_was_made_again() -> None:
    cut = replace(RECORD[0], run_id="cut", outcome=Outcome.CUT, steps=None, sweep=())
    assert kinds(gate((*RECORD[1:], cut), None, ()), "outcome").count(Severity.ERROR) == 1
    assert set(kinds(gate((cut, *RECORD), None, ()), "outcome")) == {Severity.OK}
    failed = replace(cut, outcome=Outcome.FAILED)
    assert Severity.ERROR in kinds(gate((failed, *RECORD), None, ()), "outcome")


def slower(run: Run, factor: float) -> Run:
    return replace(run, sweep=tuple(replace(p, time_s=tuple(t * factor for t in p.time_s)) for p in run.sweep))


def spread(*factors: float) -> tuple[Run, ...]:
    """Return launches of one sweep, each slower by its factor."""
    runs = (replace(synthetic.sweep(2), run_id=f"r{at}", launch=at) for at, _ in enumerate(factors, start=1))
    return tuple(slower(run, factor) for run, factor in zip(runs, factors, strict=True))


TOLERANCE = (thresholds.Threshold(limits=thresholds.ThresholdLimits(below_baseline=0.05)),)


def test_what_is_too_noisy_names_the_one_command_whose_launches_would_tell() -> None:
    before, now = spread(1.0, 1.001, 0.999, 1.0, 1.001), spread(0.97, 1.0, 1.03)
    checks = gate(now, before, TOLERANCE)
    (noisy,) = (each for each in checks if each.kind == "baseline")
    assert (noisy.severity, noisy.noisy) == (Severity.UNKNOWN, True)
    assert noisy.launches is not None
    assert 3 < noisy.launches < 20
    error = failure(checks, lambda launches: f"vsml bench --repeats {launches}")
    assert error is not None
    assert (error.code, error.hint) == ("bench.too-noisy", f"vsml bench --repeats {noisy.launches}")
    # As many launches of that spread do tell.
    enough = (spread(0.97, 1.0, 1.03) * noisy.launches)[: noisy.launches]
    again = tuple(replace(run, run_id=f"r{at}") for at, run in enumerate(enough))
    assert kinds(gate(again, before, TOLERANCE), "baseline") == [Severity.OK]


def test_a_baseline_that_spreads_too_much_is_what_to_measure_again() -> None:
    checks = gate(spread(1.0, 1.001, 0.999), spread(0.9, 1.1), TOLERANCE)
    (noisy,) = (each for each in checks if each.kind == "baseline")
    assert (noisy.noisy, noisy.launches) == (True, None)
    error = failure(checks, lambda launches: "vsml bench")
    assert error is not None
    assert "baseline" in error.hint


def test_of_a_single_launch_nothing_is_told_and_more_are_asked_for() -> None:
    checks = gate(spread(1.0), spread(1.0, 1.01, 0.99), TOLERANCE)
    (noisy,) = (each for each in checks if each.kind == "baseline")
    assert noisy.severity is Severity.UNKNOWN
    assert noisy.launches is not None


def test_too_few_launches_for_a_baseline_name_the_command_that_adds_them(golden: Golden) -> None:
    with pytest.raises(NotPossible) as refused:
        baseline.choose_runs(spread(1.0), again="vsml bench --repeats 3 --results here")
    golden(refused.value.hint)


def with_steps_around(rng: random.Random, cv: float) -> tuple[Run, ...]:
    return spread(*(rng.gauss(1, cv) for _ in range(baseline.LAUNCHES)))


@pytest.mark.parametrize("cv", [0.005, 0.03, 0.1])
def test_the_thresholds_of_a_baseline_let_an_unchanged_cluster_pass_however_its_launches_differ(cv: float) -> None:
    """By 5 % alone it is 1 of 100 at a CV of 10 %."""
    rng = random.Random(7)
    opened = 0
    for _ in range(60):
        before, later = with_steps_around(rng, cv), with_steps_around(rng, cv)
        text = thresholds.read(baseline.thresholds(before), "t")
        opened += failure(gate(later, before, text)) is None
    assert opened >= 54


def test_a_quiet_baseline_asks_for_five_percent() -> None:
    text = thresholds.read(baseline.thresholds(spread(1.0, 1.001, 0.999, 1.0, 1.001)), "t")
    assert thresholds.limits(text, synthetic.sweep(2).configuration).below_baseline == thresholds.TOLERANCE
