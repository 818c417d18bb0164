"""What a report says and draws of training regimes."""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest
from rich.console import Console

from tests.unit.bench import synthetic
from vsphere_ml.bench.analysis.explain import explain
from vsphere_ml.bench.analysis.study import study
from vsphere_ml.bench.network.regimes import Regime
from vsphere_ml.bench.report.canvas import NARROW, WIDTH
from vsphere_ml.bench.report.html_page import page
from vsphere_ml.bench.report.markdown import markdown
from vsphere_ml.bench.report.regimes.flow import MOST, draw, flow_drawings
from vsphere_ml.bench.report.report_content import story
from vsphere_ml.cli.views.bench import explain as explained

if TYPE_CHECKING:
    from tests.golden import Golden

SVG = "{http://www.w3.org/2000/svg}"
STEPS = {
    Regime.SINGLE: 0.011,
    Regime.LOCAL_SERVER: 0.02,
    Regime.LOCAL_ALLREDUCE: 0.02,
    Regime.ASYNCHRONOUS: 0.83,
    Regime.SYNCHRONOUS: 0.84,
    Regime.SHARDED: 0.43,
    Regime.RING: 0.42,
}
RECORD = tuple(
    synthetic.regime(kind, 1 if kind.spec.local else 2, step_s, launch=launch)
    for kind, step_s in STEPS.items()
    for launch in (1, 2, 3)
)


def test_a_terminal_of_80_columns_has_all_regimes_their_transfers_and_their_order(golden: Golden) -> None:
    seen = study(RECORD)
    console = Console(width=80, force_terminal=False, record=True, file=StringIO())
    console.print(explained.text(seen, explain(seen)))
    text = console.export_text()
    assert max(map(len, text.splitlines())) <= 80
    golden(text)


def test_the_page_has_tables_and_a_drawing_for_each_regime_and_runs_nothing() -> None:
    seen = study(RECORD)
    content = story(seen)
    text = page(content, seen)
    assert text.count("<svg ") == 2 * len(Regime)  # for screens, and for telephones
    assert "<script" not in text
    assert [each.heading for each in content.tables[:2]] == ["Training regimes", "Transfers"]
    assert "## Training regimes" in markdown(content)


def test_the_headline_is_the_quickest_between_nodes(golden: Golden) -> None:
    golden(story(study(RECORD)).headline.text)


@pytest.mark.parametrize("width", [WIDTH, NARROW])
@pytest.mark.parametrize("regime", Regime)
def test_every_drawing_is_well_formed_and_inside_its_frame(regime: Regime, width: int) -> None:
    servers = {"sharded": 2, "ring": 0, "single": 0, "local-allreduce": 0}.get(regime, 1)
    svg = ET.fromstring(draw(regime, regime.spec.ranks or 3, servers, width))
    _, _, wide, height = map(float, (svg.get("viewBox") or "").split())
    for each in [*svg.iter(f"{SVG}polyline"), *svg.iter(f"{SVG}polygon")]:
        for point in (each.get("points") or "").split():
            x, y = map(float, point.split(","))
            assert 0 <= x <= wide
            assert 0 <= y <= height
    texts = [each.text for each in svg.iter(f"{SVG}text")]
    assert len([each for each in texts if each and each.startswith(("worker", "device"))]) == (regime.spec.ranks or 3)
    arrows = len(list(svg.iter(f"{SVG}polygon")))
    assert arrows == {"single": 0, "ring": 3, "local-allreduce": 3}.get(regime, 2 * 3 * servers)


def test_workers_beyond_what_can_be_drawn_are_left_out() -> None:
    seen = study([synthetic.regime(Regime.RING, 16, 0.8)])
    (drawn,) = flow_drawings(seen.regimes)
    assert drawn.svg.count(">worker ") == MOST
