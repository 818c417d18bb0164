"""Titles of configurations: no two at hand have the same, and none says what all of them have in common."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.bench import synthetic
from vsphere_ml.bench.analysis.compare import compare
from vsphere_ml.bench.analysis.explain import explain
from vsphere_ml.bench.analysis.study import study
from vsphere_ml.bench.gate.gate import gate
from vsphere_ml.bench.model.record import Configuration, Workload
from vsphere_ml.bench.model.titles import Titles
from vsphere_ml.bench.report.plots import plots
from vsphere_ml.bench.report.report_content import story

if TYPE_CHECKING:
    from tests.golden import Golden
    from vsphere_ml.bench.model.record import Run

ASKED = Configuration(
    workload=Workload.TRAIN, nodes=2, ranks=2, launcher="horovodrun", backend="gloo", model="small", batch=32
)
PLAIN = "train small, 2 nodes, 2 ranks, tcp"


def test_alone_a_configuration_is_told_by_what_it_is_and_its_size(golden: Golden) -> None:
    assert Titles.of([ASKED])(ASKED) == PLAIN
    alone = replace(ASKED, nodes=1, ranks=1)
    golden(Titles.of([ASKED, alone])(alone))
    assert Titles()(replace(ASKED, gradients="fp16")) == f"{PLAIN}, fp16 gradients"


@pytest.mark.parametrize(
    ("change", "first", "second"),
    [
        ({"launcher": "mpirun"}, "horovodrun", "mpirun"),
        ({"backend": "mpi"}, "gloo", "mpi"),
        ({"batch": 64}, "batch 32", "batch 64"),
        ({"precision": "fp16"}, "fp32 arithmetic", "fp16 arithmetic"),
        ({"options": {"in": "container"}}, "", "in container"),
        ({"options": {"mpi": "4.1.8"}}, "", "MPI 4.1.8"),
        ({"options": {"steps": "100"}}, "", "steps 100"),
        ({"options": {"variables": "NCCL_ALGO=RING"}}, "", "NCCL_ALGO=RING"),
    ],
)
def test_what_differs_is_told_and_nothing_else(change: dict[str, Any], first: str, second: str) -> None:
    other = replace(ASKED, **change)
    titles = Titles.of([ASKED, other])
    assert (titles(ASKED), titles(other)) == (f"{PLAIN}, {first}".rstrip(", "), f"{PLAIN}, {second}")


def test_another_workload_or_model_is_told_by_its_name_alone() -> None:
    other = replace(ASKED, model="resnet50", batch=64, launcher="mpirun")
    assert Titles.of([ASKED, other])(ASKED) == PLAIN


def test_a_launch_that_failed_lacks_no_parameters() -> None:
    trained = replace(ASKED, parameters=7)
    assert Titles.of([ASKED, trained])(trained) == PLAIN
    assert Titles.of([trained, replace(trained, parameters=8)])(trained) == f"{PLAIN}, 7 parameters"


def test_no_two_configurations_have_one_title() -> None:
    keys = ("launcher", "backend", "batch", "options")
    values: tuple[Any, ...] = (
        ("horovodrun", "mpirun"),
        ("gloo", "mpi"),
        (8, 32),
        ({}, {"in": "container"}, {"mpi": "5.0.11"}),
    )
    asked = [replace(ASKED, **dict(zip(keys, each, strict=True))) for each in product(*values)]
    titles = Titles.of(asked)
    assert len({titles(each) for each in asked}) == len(asked) == 24


def by_both() -> tuple[Run, ...]:
    gloo = synthetic.record(nodes=2, launches=2)
    mpi = [replace(run, run_id=f"{run.run_id}-mpi") for run in gloo]
    return (*gloo, *(replace(run, configuration=replace(run.configuration, backend="mpi")) for run in mpi))


def test_every_row_of_a_report_tells_which_configuration_it_is_of(golden: Golden) -> None:
    content = story(study(by_both()))
    golden([each.partition(": ")[0] for each in content.verdicts])
    tables = {table.heading: [row[0] for row in table.rows] for table in content.tables}
    assert len(set(tables["Training"])) == len(tables["Training"]) == 4
    golden(tables)
    assert len(set(tables["Proofs"])) == 6


def test_every_plot_tells_which_configurations_it_is_of() -> None:
    drawn = plots(study(by_both()))
    for words in (
        "Scaling of train resnet50, gloo",
        "Scaling of train resnet50, mpi",
        "2 nodes tcp gloo",
        "2 nodes tcp mpi",
    ):
        assert any(words in each.svg for each in drawn)


def test_explain_compare_and_gate_give_the_same_titles() -> None:
    runs = by_both()
    wanted = {"train resnet50, 2 nodes, 2 ranks, tcp, gloo", "train resnet50, 2 nodes, 2 ranks, tcp, mpi"}
    assert wanted <= {each.target for each in explain(study(runs))}
    assert wanted <= {each.title for each in compare(runs, runs).rows}
    assert wanted <= {each.target.rpartition(", launch")[0] for each in gate(runs, None, ())}


def test_a_forced_comparison_of_two_configurations_names_both(golden: Golden) -> None:
    first, second = by_both()[:6], by_both()[6:]
    rows = compare(first, second, force=True).rows
    golden(rows[-1].title)
