from __future__ import annotations

import csv
import io
import re
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.bench import synthetic
from tests.unit.bench.synthetic import Machine
from vsphere_ml.bench.analysis.study import study
from vsphere_ml.bench.model import figures
from vsphere_ml.bench.model.record import LinkResult, Outcome, Steps, Workload, World
from vsphere_ml.bench.model.transports import Transport
from vsphere_ml.bench.report.canvas import NARROW, WIDTH, linear_axis, ticks
from vsphere_ml.bench.report.html_page import page
from vsphere_ml.bench.report.markdown import markdown
from vsphere_ml.bench.report.plots import plots
from vsphere_ml.bench.report.report_content import story
from vsphere_ml.bench.report.spreadsheet import sheet
from vsphere_ml.core.diagnostics import Diagnostic

if TYPE_CHECKING:
    from tests.golden import Golden
    from vsphere_ml.bench.model.record import Run

RECORD = synthetic.record(nodes=3, launches=2)
LINK = LinkResult(tool="iperf3", sender="a", receiver="b", bytes_per_s=1)
HOSTILE = "<script>alert(1)</script>|\x1b[31m\n# =cmd()"


def html_of(runs: tuple[Run, ...]) -> str:
    seen = study(runs)
    return page(story(seen), seen)


def hostile(run: Run) -> Run:
    asked = replace(run.configuration, model=HOSTILE)
    placement = tuple(replace(each, node=HOSTILE, host=HOSTILE, device=HOSTILE) for each in run.placement)
    return replace(run, configuration=asked, placement=placement, reason=HOSTILE, run_id=HOSTILE)


class Tags(HTMLParser):
    """Gathers what a page is made of."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.addresses += [value or "" for name, value in attrs if name in {"src", "href", "srcset", "action"}]


def test_the_page_is_whole_in_itself_and_runs_nothing() -> None:
    text = html_of(RECORD)
    tags = Tags()
    tags.feed(text)
    assert "script" not in tags.tags
    assert tags.addresses == []
    assert "url(" not in text
    assert "@import" not in text
    assert tags.tags.count("svg") == 2 * 3  # for screens, and for telephones
    assert text.count("default-src &#x27;none&#x27;") + text.count("default-src 'none'") == 1


@pytest.mark.parametrize("width", [WIDTH, NARROW])
def test_every_plot_is_well_formed_and_inside_its_frame(width: int) -> None:
    for drawn in plots(study(RECORD), width):
        svg = ET.fromstring(drawn.svg)
        _, _, wide, height = map(float, (svg.get("viewBox") or "").split())
        for line in svg.iter("{http://www.w3.org/2000/svg}polyline"):
            for point in (line.get("points") or "").split():
                x, y = map(float, point.split(","))
                assert 0 <= x <= wide
                assert 0 <= y <= height


def test_names_that_would_be_markup_are_text() -> None:
    runs = tuple(map(hostile, RECORD))
    tags = Tags()
    tags.feed(html_of(runs))
    assert "script" not in tags.tags
    assert re.search(r"(?<!\\)<", markdown(story(study(runs)))) is None
    assert all(line.count("|") > 1 for line in markdown(story(study(runs))).splitlines() if line.startswith("|"))


def test_cells_of_the_sheet_are_no_formulas() -> None:
    bad = replace(RECORD[0], run_id="=HYPERLINK(0)", configuration=replace(RECORD[0].configuration, model="@x"))
    rows = list(csv.reader(io.StringIO(sheet((bad,)))))
    assert rows[1][0] == "'=HYPERLINK(0)"
    assert rows[1][6] == "'@x"


def test_the_sheet_has_every_launch_and_every_size() -> None:
    rows = list(csv.DictReader(io.StringIO(sheet(RECORD))))
    assert {row["run_id"] for row in rows} == {run.run_id for run in RECORD}
    sizes = {row["size_bytes"] for row in rows if row["figure"] == "allreduce_bus_bytes_per_s"}
    assert sizes == {str(size) for size in synthetic.SIZES}


def test_the_verdict_names_figure_base_and_bounds(golden: Golden) -> None:
    verdict = story(study(RECORD)).verdicts[0]
    golden(verdict)


def test_the_sheet_names_figures_as_superbench_does_and_in_its_units() -> None:
    rows = [row for row in csv.DictReader(io.StringIO(sheet(RECORD))) if row["superbench_metric"]]
    of = {row["superbench_metric"]: row for row in rows}
    bus = of["horovod-bw/allreduce_4194304_busbw"]
    assert float(bus["superbench_value"]) == pytest.approx(float(bus["value"]) / 1e9)
    assert float(of["horovod-train/resnet50_fp32_train_step_time"]["superbench_value"]) > 100  # ms
    assert all(re.fullmatch(r"[a-z-]+/[A-Za-z0-9_.-]+", name) for name in of)


def test_what_was_noted_and_how_ranks_became_fewer_is_told(golden: Golden) -> None:
    noted = Diagnostic(code="bench.lost-node", target="node-2", message="no answer")
    worlds = (World(ranks=2, first_step=0, step_s=(0.2,)), World(ranks=1, first_step=0, step_s=(0.1, 0.1)))
    content = story(study((replace(RECORD[0], diagnostics=(noted,), worlds=worlds),)))
    tables = {each.heading: each.rows for each in content.tables}
    assert [row[2:] for row in tables["Elastic"]] == [("2", "0", "1", "200 ms"), ("1", "0", "2", "100 ms")]
    assert [rows[0][2:] for rows in tables.values()].count(("node-2", "no answer")) == 1
    golden(tables)


def test_what_was_not_measured_is_told_in_every_form() -> None:
    measured = tuple(replace(run, synthetic=False, lab=False) for run in RECORD)
    content = story(study(measured))
    assert any(each.startswith("GPU clocks") for each in content.not_measured)
    assert "<h2>Not measured</h2>" in html_of(measured)
    assert "## Not measured" in markdown(content)
    clocks = replace(measured[0].environment, clocks={"node-0": "GPU-1: SM 1410 MHz"})
    seen = story(study((replace(measured[0], environment=clocks), *measured[1:])))
    assert not any(each.startswith("GPU clocks") for each in seen.not_measured)


def test_a_record_without_a_complete_launch_says_so_first(golden: Golden) -> None:
    failed = tuple(replace(run, outcome=Outcome.FAILED, reason="status 1") for run in RECORD[:2])
    golden(story(study(failed)).verdicts)


def test_no_efficiency_is_told_without_a_base(golden: Golden) -> None:
    alone = tuple(run for run in RECORD if run.configuration.nodes == 3)
    content = story(study(alone))
    golden(content.verdicts[0])
    assert content.tables[0].rows[0][4] == "no base"
    golden(content.notices)


def test_what_stands_in_for_hardware_says_so_in_every_form(golden: Golden) -> None:
    content = story(study(RECORD))
    assert [each.partition(":")[0] for each in content.notices] == ["synthetic", "lab"]
    golden(content.notices)
    for text in (html_of(RECORD), markdown(content)):
        assert all(notice in unescape(text) for notice in content.notices)


@pytest.mark.parametrize(
    "runs",
    [
        RECORD[:1],
        tuple(run for run in RECORD if run.sweep),
        (replace(RECORD[0], outcome=Outcome.FAILED, reason="killed"),),
        (replace(RECORD[0], steps=Steps(step_s=((0.1,),))),),
        (replace(RECORD[0], steps=Steps(step_s=((0.1, 0.1),))),),
        (replace(RECORD[1], steps=None, link_results=(LINK,)),),
        tuple(replace(run, sweep=run.sweep[:1]) for run in RECORD if run.sweep),
        synthetic.record(machine=Machine(cv=0), nodes=2, launches=2),
    ],
    ids=["one launch", "sweeps only", "failed", "one step", "equal steps", "links", "one size", "no noise"],
)
def test_a_poor_record_is_reported_too(runs: tuple[Run, ...]) -> None:
    seen = study(runs)
    content = story(seen)
    assert page(content, seen)
    assert markdown(content)
    assert sheet(runs)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.1504, "150.4 ms"),
        (1.5e-6, "1.5 µs"),
        (12.0, "12 s"),
        (2.61e6, "725.0 h"),
        (0.0, "0 ns"),
        (3e-13, "0.0003 ns"),
    ],
)
def test_times_have_the_unit_that_fits(value: float, text: str) -> None:
    assert figures.seconds(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(1.175e9, "1.175 GB/s"), (117_500_000.0, "117.5 MB/s"), (42e9, "42 GB/s"), (0.0, "0 B/s")]
)
def test_bandwidths_have_the_unit_that_fits(value: float, text: str) -> None:
    assert figures.bandwidth(value) == text


def test_message_sizes_are_in_powers_of_two_where_they_are_one() -> None:
    assert [figures.message_size(each) for each in (4 << 20, 1024, 1000, 1)] == ["4 MiB", "1 KiB", "1000 B", "1 B"]


@given(st.floats(-1e12, 1e12), st.floats(0, 1e12))
def test_ticks_are_round_and_cover_the_values(low: float, more: float) -> None:
    marks = ticks(low, low + more)
    assert 2 <= len(marks) <= 12
    slack = 1e-6 * (abs(low) + more + 1)  # a fraction of a pixel
    assert marks[0] <= low + slack
    assert marks[-1] >= low + more - slack


def test_an_axis_of_one_value_stands_in_the_middle() -> None:
    axis = linear_axis([5.0], begin=0, end=100, label=str, zero=False)
    assert 0 <= axis.at(5.0) <= 100


def test_published_figures_stand_beside_hardware_only(golden: Golden) -> None:
    hardware = tuple(replace(run, lab=False) for run in RECORD)
    assert story(study(RECORD)).published is None
    for text in (html_of(hardware), markdown(story(study(hardware)))):
        assert "2 nodes" in text
        golden(re.findall(r"^## .*|<h2>.*?</h2>", text, re.MULTILINE))
    assert not re.search(r"\b(beat|beats|beaten|better than|faster than)\b", html_of(hardware))


def test_a_sweep_is_held_against_the_calibration_and_against_what_headers_leave(golden: Golden) -> None:
    (text, *_) = story(study(RECORD)).fits
    golden(text)


def test_each_transport_and_precision_of_a_matrix_has_its_verdict_and_its_name(golden: Golden) -> None:
    over = [
        replace(run, configuration=replace(run.configuration, transport=transport))
        for transport in (Transport.TCP, Transport.GPUDIRECT)
        for run in RECORD
    ]
    halved = [
        replace(run, configuration=replace(run.configuration, gradients="fp16"))
        for run in RECORD
        if run.configuration.workload == "train"
    ]
    said = [each.partition(":")[0] for each in story(study((*over, *halved))).verdicts]
    golden(said)


def of_nodes(*nodes: int) -> tuple[Run, ...]:
    return tuple(run for run in RECORD if run.configuration.nodes in nodes)


def without_link(run: Run) -> Run:
    return replace(run, link=replace(run.link, line_rate_bits_per_s=None, calibrated_bytes_per_s=None))


def test_one_node_whose_link_nobody_measured_takes_no_bracket_away(golden: Golden) -> None:
    runs = tuple(without_link(run) if run.configuration.nodes == 1 else run for run in of_nodes(1, 2))
    seen = study(runs)
    assert [each.bounds is None for each in seen.scalings] == [True, False]
    assert not any("bounds" in each for each in story(seen).notices)
    (plot,) = (each for each in plots(seen) if "Scaling" in each.caption)
    assert plot.svg.count('class="bounds"') == 2, "of the one number of nodes that has one, and in the legend"
    golden(re.findall(r"<text[^>]*>(.*?)</text>", plot.svg))


def test_where_there_is_no_bracket_none_is_in_the_legend_and_the_notice_names_it(golden: Golden) -> None:
    seen = study(tuple(map(without_link, of_nodes(1, 2))))
    (notice,) = (each for each in story(seen).notices if "bounds" in each)
    assert seen.scalings[1].point.title in notice
    (plot,) = (each for each in plots(seen) if "Scaling" in each.caption)
    assert 'class="bounds"' not in plot.svg
    golden(re.findall(r"<text[^>]*>(.*?)</text>", plot.svg))


def test_a_program_that_writes_no_times_has_a_verdict_too(golden: Golden) -> None:
    asked = replace(RECORD[0].configuration, workload=Workload.SCRIPT, model="", nodes=2, ranks=2)
    run = replace(
        RECORD[0], configuration=asked, steps=None, started="2026-01-31T12:00:00Z", ended="2026-01-31T12:00:30Z"
    )
    (verdict,) = story(study((run,))).verdicts
    golden(verdict)
