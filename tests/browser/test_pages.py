"""The report and the page of a site in a real browser: nothing scrolls sideways, texts are readable light and dark."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.browser import chromium
from tests.browser.chromium import DARK, LIGHT, Browser
from tests.fakes.pictures import quad_8u3
from tests.unit.bench import synthetic
from vsphere_ml.bench.analysis.study import study
from vsphere_ml.bench.model.record import LinkLoad, LinkResult
from vsphere_ml.bench.report.html_page import page
from vsphere_ml.bench.report.report_content import story
from vsphere_ml.cli.views.site import site_page
from vsphere_ml.core.model.inventory import VmRef
from vsphere_ml.lab.machine_packages import PackageNeed

if TYPE_CHECKING:
    from pathlib import Path

TELEPHONE, DESK = 400, 1280
NEEDED = PackageNeed("browser", chromium.PROGRAM, "chromium")
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not NEEDED.is_met(), reason=f"no {chromium.PROGRAM}: apt-get install -y {NEEDED.package}"),
]


def report() -> str:
    """Return a report with every kind of table and plot, unfolded; long names in it."""
    links = tuple(
        LinkResult(tool="iperf3", sender=f"node-with-a-long-name-{a}", receiver="node-02", bytes_per_s=1e9, load=load)
        for a in range(4)
        for load in LinkLoad
    )
    runs = synthetic.record(nodes=4, launches=5)
    seen = study((replace(runs[0], link_results=links), *runs[1:]))
    return page(story(seen), seen).replace("<details>", "<details open>")


def site() -> str:
    """Return a site with a cluster of many nodes and a host with a long name."""
    inventory = quad_8u3()
    first, *hosts = inventory.hosts
    hosts = [replace(first, name=f"esx-{'very-' * 9}long-01.lab.example.com"), *hosts]
    nodes = [
        replace(
            inventory.vms[0], ref=VmRef(f"vm-{at}"), name=f"node-{at:02}", cluster_mark="train", host=hosts[at % 4].ref
        )
        for at in range(1, 41)
    ]
    return site_page.html(replace(inventory, hosts=tuple(hosts), vms=(*inventory.vms, *nodes)))


PAGES = {"report": report, "site": site}


@pytest.fixture
def browser(tmp_path: Path) -> Browser:
    return Browser(tmp_path)


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("width", [TELEPHONE, DESK])
def test_nothing_is_wider_than_the_screen(browser: Browser, name: str, width: int) -> None:
    seen = browser.measure(PAGES[name](), width, LIGHT)
    assert (seen["width"], seen["wide"]) == (width, [])


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("scheme", [LIGHT, DARK], ids=["light", "dark"])
def test_every_text_is_large_enough_and_stands_out_from_what_is_below_it(
    browser: Browser, name: str, scheme: str
) -> None:
    texts = browser.measure(PAGES[name](), TELEPHONE, scheme)["texts"]
    assert len(texts) > 20
    assert [each for each in texts if each["size"] < 11] == []
    assert [each for each in texts if chromium.contrast(each["ink"], each["paper"]) < 4.5] == []


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_drawn_light_and_dark_as_the_reader_s_system_is(browser: Browser, name: str) -> None:
    light, dark = (chromium.brightness(browser.draw(PAGES[name](), TELEPHONE, 900, each)) for each in (LIGHT, DARK))
    assert (light > 0.9, dark < 0.2) == (True, True)


@pytest.mark.parametrize(
    ("name", "answers"), [("site", ("free", "node-03")), ("report", ("efficiency", "network allows"))]
)
def test_what_is_asked_first_is_answered_on_the_first_screen(
    browser: Browser, name: str, answers: tuple[str, ...]
) -> None:
    before = browser.measure(PAGES[name](), DESK, LIGHT)["first_screen"]
    assert [each for each in answers if each not in before] == []
