"""The scaling curve on a terminal and in a pipe."""

from __future__ import annotations

import io

from rich.console import Console, Group

from tests.unit.bench import synthetic
from vsphere_ml.bench.analysis.study import study
from vsphere_ml.cli.views.bench.curve import MEASURED, WIDTH, curves

RUNS = synthetic.record(nodes=3, launches=2)


def drawn(**how: bool) -> str:
    out = io.StringIO()
    Console(file=out, width=100, _environ={"TERM": "xterm-256color"}, **how).print(Group(*curves(study(RUNS))))  # type: ignore[arg-type]
    return out.getvalue()


def test_each_point_stands_where_its_efficiency_is_and_inside_its_bracket() -> None:
    rows = [line for line in drawn(force_terminal=False).splitlines() if MEASURED in line]
    assert len(rows) == 3
    for row in rows[1:]:
        percent = float(row.split()[-3])
        assert abs((row.index(MEASURED) - 8) / WIDTH * 100 - percent) <= 1
        assert row[row.index(MEASURED) - 1] == row[row.index(MEASURED) + 1] == "░"


def test_a_pipe_and_no_color_get_no_escape() -> None:
    assert "\x1b[" in drawn(force_terminal=True)
    assert "\x1b" not in drawn(force_terminal=False)
    assert "\x1b[3" not in drawn(force_terminal=True, no_color=True)


def test_one_number_of_nodes_makes_no_curve() -> None:
    assert list(curves(study([run for run in RUNS if run.configuration.nodes == 2]))) == []
