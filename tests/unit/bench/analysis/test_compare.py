from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest

from tests.unit.bench import synthetic
from tests.unit.bench.synthetic import Machine
from vsphere_ml.bench.analysis.compare import compare
from vsphere_ml.bench.analysis.metric import metric
from vsphere_ml.bench.gate.gate import GateCheck, failure, gate
from vsphere_ml.bench.gate.junit import xml
from vsphere_ml.bench.gate.thresholds import TOLERANCE, Threshold, ThresholdLimits
from vsphere_ml.bench.model.record import Cluster, LinkResult, Outcome
from vsphere_ml.bench.stats.verdicts import ComparisonResult
from vsphere_ml.core.diagnostics import Severity
from vsphere_ml.core.errors import BenchError, NotPossible

if TYPE_CHECKING:
    from tests.golden import Golden
    from vsphere_ml.bench.model.record import Run


def sweeps(gbit: float, *, launches: int = 3, seed: int = 1) -> tuple[Run, ...]:
    machine = Machine(usable_bytes_per_s=0.9414 * gbit * 1e9 / 8, line_rate_bits_per_s=gbit * 1e9)
    return tuple(synthetic.sweep(2, machine=machine, launch=each, seed=seed) for each in range(1, launches + 1))


def test_900_megabit_is_slower_than_a_gigabit() -> None:
    (row,) = compare(sweeps(1.0), sweeps(0.9, seed=2)).rows
    assert row.answer is ComparisonResult.SLOWER
    assert row.ratio.value == pytest.approx(0.9, abs=0.01)


def test_a_gigabit_is_faster_than_900_megabit() -> None:
    (row,) = compare(sweeps(0.9), sweeps(1.0, seed=2)).rows
    assert row.answer is ComparisonResult.FASTER


def test_twice_a_gigabit_is_equivalent_however_often_it_is_tried() -> None:
    answers = [compare(sweeps(1.0, seed=seed), sweeps(1.0, seed=-seed)).rows[0].answer for seed in range(1, 60)]
    assert set(answers) == {ComparisonResult.EQUIVALENT}


def test_one_launch_on_a_side_tells_nothing_and_says_why() -> None:
    (row,) = compare(sweeps(1.0), sweeps(0.9, launches=1)).rows
    assert row.answer is ComparisonResult.NOISY
    assert "one launch" in row.reason


def test_launches_that_ended_once_they_agreed_are_not_taken_for_that_sure() -> None:
    def agreed(runs: tuple[Run, ...]) -> tuple[Run, ...]:
        return tuple(replace(run, method=replace(run.method, repeats_ci_target=0.02)) for run in runs)

    sides = sweeps(1.0, launches=20), sweeps(1.0, launches=20, seed=2)
    counted, agreed_on = (compare(*each).rows[0].ratio for each in (sides, [agreed(side) for side in sides]))
    assert counted.value == agreed_on.value
    assert counted.half_width is not None
    assert agreed_on.half_width is not None
    assert counted.half_width < agreed_on.half_width


def test_noise_is_told_from_sameness() -> None:
    rng = random.Random(3)
    loud = tuple(
        replace(run, sweep=tuple(replace(each, time_s=(each.time_s[0] * factor,)) for each in run.sweep))
        for run in sweeps(1.0, launches=4)
        for factor in [rng.uniform(0.7, 1.4)]
    )
    assert compare(sweeps(1.0), loud).rows[0].answer is ComparisonResult.NOISY


def test_other_configurations_are_refused_with_what_differs(golden: Golden) -> None:
    other = tuple(replace(run, configuration=replace(run.configuration, backend="mpi")) for run in sweeps(1.0))
    with pytest.raises(NotPossible) as caught:
        compare(sweeps(1.0), other)
    assert caught.value.code == "bench.not-comparable"
    golden(caught.value)
    forced = compare(sweeps(1.0), other, force=True)
    assert forced.rows[0].answer is ComparisonResult.EQUIVALENT
    golden(forced.differences)


@pytest.mark.parametrize("changed", [{"precision": "mixed_float16"}, {"options": {"xla": "on"}}])
def test_other_arithmetic_and_xla_are_other_configurations(changed: dict[str, Any]) -> None:
    runs = sweeps(1.0)
    other = [replace(run, configuration=replace(run.configuration, **changed)) for run in runs]
    with pytest.raises(NotPossible) as caught:
        compare(runs, other)
    assert caught.value.code == "bench.not-comparable"


def test_a_record_of_the_lab_is_not_compared_with_one_of_hardware(golden: Golden) -> None:
    hardware = tuple(replace(run, lab=False) for run in sweeps(1.0))
    with pytest.raises(NotPossible) as caught:
        compare(sweeps(1.0), hardware)
    assert caught.value.code == "bench.not-comparable"
    golden(caught.value)


def test_another_placement_is_refused(golden: Golden) -> None:
    together = tuple(
        replace(run, placement=tuple(replace(each, host="esx-0") for each in run.placement)) for run in sweeps(1.0)
    )
    with pytest.raises(NotPossible) as caught:
        compare(sweeps(1.0), together)
    assert caught.value.code == "bench.not-comparable"
    golden(caught.value)


def test_gpus_farther_from_the_nic_are_another_placement_and_what_nobody_told_is_none(golden: Golden) -> None:
    near, far = (
        tuple(
            replace(run, placement=tuple(replace(each, locality=locality) for each in run.placement))
            for run in sweeps(1.0)
        )
        for locality in ("same PCIe switch", "across NUMA nodes")
    )
    with pytest.raises(NotPossible) as caught:
        compare(near, far)
    assert caught.value.code == "bench.not-comparable"
    golden(caught.value)
    assert compare(near, sweeps(1.0)).rows[0].answer is ComparisonResult.EQUIVALENT


def test_a_record_without_a_complete_launch_is_refused(golden: Golden) -> None:
    cut = tuple(replace(run, outcome=Outcome.CUT) for run in sweeps(1.0))
    with pytest.raises(NotPossible) as caught:
        compare(sweeps(1.0), cut)
    assert caught.value.code == "bench.not-comparable"
    golden(caught.value)


def test_what_else_differs_and_what_only_one_has_is_told(golden: Golden) -> None:
    extra = synthetic.sweep(3)
    made = compare((*sweeps(1.0), extra), sweeps(0.9, seed=2))
    golden(made.alone)
    golden(made.differences)


def test_another_interface_and_another_plan_are_told(golden: Golden) -> None:
    def moved(run: Run) -> Run:
        cluster = replace(run.cluster or Cluster(name=""), plan_digest="sha256:bb")
        return replace(run, link=replace(run.link, interface="eth1"), cluster=cluster)

    texts = compare(sweeps(1.0), tuple(map(moved, sweeps(1.0, seed=2)))).differences
    golden(texts)


def test_what_every_launch_has_another_of_is_no_difference() -> None:
    def launched(run: Run, name: str, calibrated: float) -> Run:
        environment = replace(run.environment, variables={"PATH": f"/var/tmp/{name}/bin:/bin"})
        link = replace(run.link, calibrated_bytes_per_s=calibrated)
        return replace(run, run_id=name, environment=environment, link=link)

    first = tuple(launched(run, f"a{run.launch}", 1.17e9) for run in sweeps(1.0))
    second = tuple(launched(run, f"b{run.launch}", 1.18e9) for run in sweeps(1.0, seed=2))
    assert compare(first, second).differences == ()


def test_training_and_links_have_figures_too() -> None:
    name, value = metric(synthetic.train(2)) or ("", 0.0)
    assert name == "samples_per_s"
    assert value > 0
    links = (LinkResult(tool="iperf3", sender="a", receiver="b", bytes_per_s=100.0),)
    name, value = metric(replace(synthetic.train(1), steps=None, link_results=links)) or ("", 0.0)
    assert name == "link_bytes_per_s"
    assert value == pytest.approx(100)
    assert metric(replace(synthetic.train(1), steps=None)) is None


def kinds(checks: tuple[GateCheck, ...]) -> dict[str, Severity]:
    return {each.kind: each.severity for each in checks}


def asked(tolerance: float = TOLERANCE, of_bound: float | None = None) -> tuple[Threshold, ...]:
    return (Threshold(limits=ThresholdLimits(below_baseline=tolerance, of_bound=of_bound)),)


def test_a_gate_opens_for_the_same_again() -> None:
    checks = gate(sweeps(1.0, seed=2), sweeps(1.0), asked(of_bound=0.85))
    assert kinds(checks) == {"outcome": Severity.OK, "baseline": Severity.OK, "bound": Severity.OK}
    assert failure(checks) is None


def test_a_gate_stays_shut_for_a_regression_and_for_less_than_the_bound() -> None:
    checks = gate(sweeps(0.9, seed=2), sweeps(1.0), asked(of_bound=0.999))
    assert kinds(checks) == {"outcome": Severity.OK, "baseline": Severity.ERROR, "bound": Severity.ERROR}
    error = failure(checks)
    assert isinstance(error, BenchError)
    assert (error.code, error.status, len(error.details)) == ("bench.regression", 6, 2)


def test_a_regression_within_the_tolerance_passes() -> None:
    assert kinds(gate(sweeps(0.97, seed=2), sweeps(1.0), asked()))["baseline"] is Severity.OK
    assert kinds(gate(sweeps(0.97, seed=2), sweeps(1.0), asked(0.01)))["baseline"] is Severity.ERROR


def test_what_cannot_be_told_is_neither_passed_nor_failed() -> None:
    checks = gate(sweeps(0.9, launches=1), sweeps(1.0), asked())
    assert kinds(checks)["baseline"] is Severity.UNKNOWN
    error = failure(checks)
    assert isinstance(error, NotPossible)
    assert (error.code, error.status) == ("bench.too-noisy", 3)


def test_what_the_record_made_otherwise_than_the_baseline_cannot_be_told(golden: Golden) -> None:
    train = tuple(synthetic.train(2, launch=each) for each in (1, 2, 3))
    larger = tuple(replace(run, configuration=replace(run.configuration, batch=64)) for run in train)
    checks = gate((*sweeps(1.0, seed=2), *larger), (*sweeps(1.0), *train), asked())
    (other,) = [each for each in checks if each.severity is Severity.UNKNOWN]
    golden(other.target)
    broken = tuple(replace(run, outcome=Outcome.FAILED) for run in train)
    gate_checks = gate((*sweeps(1.0, seed=2), *broken), (*sweeps(1.0), *train), asked())
    assert not [each for each in gate_checks if each.severity is Severity.UNKNOWN]  # their failure is reported already


def test_a_launch_that_failed_shuts_the_gate(golden: Golden) -> None:
    bad = replace(sweeps(1.0)[0], outcome=Outcome.FAILED, reason="rank 1 was killed")
    error = failure(gate((*sweeps(1.0)[1:], bad), None, asked()))
    assert isinstance(error, BenchError)
    assert error.code == "bench.regression"
    golden(error)


def test_a_link_nobody_knows_is_no_bound() -> None:
    unknown = tuple(
        replace(run, link=replace(run.link, line_rate_bits_per_s=None, calibrated_bytes_per_s=None))
        for run in sweeps(1.0)
    )
    assert kinds(gate(unknown, None, asked(of_bound=0.5)))["bound"] is Severity.UNKNOWN


def test_junit_xml_counts_failures_and_survives_any_text() -> None:
    checks = (
        GateCheck(target="a", kind="baseline", severity=Severity.OK, message="fine"),
        GateCheck(target="b <&> \x00\x1b", kind="bound", severity=Severity.ERROR, message="\ud800"),
        GateCheck(target="c", kind="bound", severity=Severity.UNKNOWN, message=""),
    )
    suite = ET.fromstring(xml(checks).encode())
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("3", "1", "1")
    assert [case.get("name") for case in suite] == ["a", "b <&> ��", "c"]
    assert [child.tag for case in suite for child in case] == ["system-out", "failure", "error"]
