"""Tables of where time goes, and of what CPUs were kept from."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.bench import synthetic
from vsphere_ml.bench.analysis.study import study
from vsphere_ml.bench.model.record import CpuContention, LocalSteps, Run, Steps
from vsphere_ml.bench.report import tables

RUN = synthetic.train(2)
STEPS = Steps(
    step_s=((0.2,) * 60,) * 2,
    input_s=((0.02,) * 60,) * 2,
    work_s=((0.17,) * 60,) * 2,
    local=LocalSteps(period_s=((0.2,) * 12,) * 2, compute_s=((0.1,) * 12,) * 2, exchange_s=((0.1,) * 12,) * 2),
)


def contended(ready: float | None) -> Run:
    return replace(RUN, contention=(CpuContention(node="node-0", steal=0.01, pressure=0.2, ready=ready),))


def test_a_steps_period_is_shown_in_its_parts() -> None:
    (row,) = tables.step_parts(study((replace(RUN, steps=STEPS),))).rows
    assert row[1:7] == ("200 ms", "10.0 %", "50.0 %", "35.0 %", "5.0 %", "30.0 %")
    assert [row[7].count(letter) for letter in "icxr"] == [2, 10, 7, 1]


def test_records_of_before_have_no_such_table() -> None:
    headings = [each.heading for each in tables.tables(study((RUN,)))]
    assert tables.step_parts(study((RUN,))).heading not in headings
    assert tables.contention(study((RUN,))).heading not in headings


def test_contention_is_the_most_that_any_launch_saw() -> None:
    (row,) = tables.contention(study((contended(0.03), contended(None), contended(0.01)))).rows
    assert row[1:] == ("node-0", "1.0 %", "20.0 %", "3.0 %", "-")
