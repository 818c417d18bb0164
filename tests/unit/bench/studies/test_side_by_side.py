"""A study's cells: figures with their ratio and interval, refusals with their cause, what is not measured yet."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from tests.unit.bench.studies.studies import measured, refused, spec
from vsphere_ml.bench.analysis.metric import launch_figures
from vsphere_ml.bench.launch.programs import HANDLED_APART
from vsphere_ml.bench.model.record import Workload
from vsphere_ml.bench.model.transports import Transport
from vsphere_ml.bench.stats.ratio import ratio
from vsphere_ml.bench.studies import STUDIES, ats, documents, pvrdma, tcp_stacks
from vsphere_ml.bench.studies.side_by_side import CellState, SideBySide, side_by_side
from vsphere_ml.cli.views.bench.studies import side_by_side as view
from vsphere_ml.flows.bench.study import StudyOutcome

if TYPE_CHECKING:
    from tests.golden import Golden

WHY = "node-1, node-2: no active RDMA port of a PVRDMA adapter with a RoCE v2 GID of an IPv4 address"


def transports() -> SideBySide:
    """Return a study of TCP against PVRDMA, by a link of twice the rate, and GPUDirect, which is refused."""
    over = (Transport.TCP, Transport.PVRDMA, Transport.GPUDIRECT)
    asked = pvrdma.DESIGN.cells(spec(workloads=(Workload.ALLREDUCE, Workload.TRAIN), transports=over))
    runs = [
        run
        for each in asked
        for run in (
            [refused(each, "bench.no-rdma", WHY)]
            if each.transport is Transport.GPUDIRECT
            else measured(each, faster=2.0 if each.transport is Transport.PVRDMA else 1.0)
        )
    ]
    return side_by_side(pvrdma.DESIGN, asked, runs)


def test_the_first_column_is_what_the_others_are_compared_with() -> None:
    made = transports()
    assert made.columns == ("tcp", "pvrdma", "gpudirect")
    allreduce, alone, two = sorted(made.rows, key=lambda row: (row.configuration.workload, row.configuration.nodes))
    assert [cell and cell.state.value for cell in alone.cells] == ["measured", None, None]
    assert [cell and cell.state.value for cell in two.cells] == ["measured", "measured", "refused"]
    tcp, by_pvrdma, _ = (cell for cell in allreduce.cells if cell is not None)
    assert tcp.ratio is None
    assert by_pvrdma.ratio is not None
    assert by_pvrdma.ratio.value == pytest.approx(2.0, rel=0.15)
    assert by_pvrdma.ratio.low is not None


def test_a_ratio_is_welch_s_of_one_figure_a_launch() -> None:
    asked = pvrdma.DESIGN.cells(spec(nodes=(2,), transports=(Transport.TCP, Transport.PVRDMA)))
    slow, fast = measured(asked[0]), measured(asked[1], faster=2.0)
    made = side_by_side(pvrdma.DESIGN, asked, (*slow, *fast))
    first, second = (launch_figures(side) for side in (slow, fast))
    assert [cell.ratio for cell in made.cells if cell.ratio is not None] == [ratio(first, second)]


def test_efficiency_is_against_one_node_of_the_same_column() -> None:
    asked = tcp_stacks.DESIGN.cells(spec(stacks=tcp_stacks.DESIGN.stacks))
    made = side_by_side(tcp_stacks.DESIGN, asked, [run for each in asked for run in measured(each)])
    assert made.columns == ("horovodrun/gloo", "mpirun/mpi")
    assert [[cell is not None and cell.efficiency is not None for cell in row.cells] for row in made.rows] == [
        [False, False],
        [True, True],
    ]


def test_a_refusal_has_its_code_and_cause_and_one_launch_has_no_interval() -> None:
    asked = pvrdma.DESIGN.cells(spec(nodes=(2,), transports=(Transport.TCP, Transport.PVRDMA, Transport.ROCE)))
    runs = [*measured(asked[0], 1), *measured(asked[1], 1), refused(asked[2], "bench.no-rdma", WHY)]
    tcp, by_pvrdma, roce = side_by_side(pvrdma.DESIGN, asked, runs).cells
    assert (roce.state, roce.code, roce.why) == (CellState.REFUSED, "bench.no-rdma", WHY)
    assert by_pvrdma.ratio is not None
    assert (tcp.launches, by_pvrdma.ratio.low) == (1, None)


def test_launches_of_the_other_state_are_found_by_their_configuration() -> None:
    asked = ats.DESIGN.cells(spec(nodes=(2,), transports=(Transport.TCP,)))
    off, on = asked
    assert [each.options["ats"] for each in asked] == ["off", "on"]
    made = side_by_side(ats.DESIGN, asked, measured(off))
    assert [cell.state for cell in made.cells] == [CellState.MEASURED, CellState.PENDING]
    made = side_by_side(ats.DESIGN, asked, (*measured(off), *measured(on)))
    assert [cell.ratio is not None for cell in made.cells] == [False, True]


def test_every_study_has_a_first_column_that_it_compares_with() -> None:
    for name, design in STUDIES.items():
        assert name == design.name
        asked = spec(nodes=(1, 2), transports=design.transports, stacks=design.stacks)
        made = side_by_side(design, design.cells(asked), ())
        assert len(made.columns) > 1
        assert {cell.state for cell in made.cells} == {CellState.PENDING}
        assert made.columns[0] == design.axis.values[0] or design.factor is None
        # No workload's program knows the state of hosts and VMs as an option.
        assert design.factor is None or design.factor.option in HANDLED_APART


def test_the_screen_has_80_columns_and_the_documents_the_same_cells(golden: Golden) -> None:
    made = replace(transports(), lab=True)
    out = io.StringIO()
    done = StudyOutcome(folder=Path("bench/study-pvrdma-train"), result=made, errors=())
    Console(file=out, width=80).print(view.answer(done).text)
    golden(out.getvalue())
    golden(documents.markdown(made))
    page = documents.page(made)
    assert page.count("<table>") == len(documents.tables(made)) == 2
    assert "bench.no-rdma" in page
    assert "<script" not in page
