"""A site as a page: totals first, a colour for each owner, neighbours joined, unused hosts that are alike folded."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.fakes.pictures import quad_8u3
from tests.unit.core.sites import direct
from vsphere_ml.cli.views.site import site_page
from vsphere_ml.core.units import Bytes

if TYPE_CHECKING:
    from vsphere_ml.core.model.inventory import Inventory


def unused(site: Inventory) -> Inventory:
    """Return the site with nobody on its GPUs and NICs."""
    hosts = (
        replace(
            host,
            gpus=tuple(replace(gpu, used_by=()) for gpu in host.gpus),
            nics=tuple(replace(nic, held_by=None, vf_holders=()) for nic in host.nics),
        )
        for host in site.hosts
    )
    return replace(site, hosts=tuple(hosts))


def headline(page: str) -> str:
    found = re.search(r"<h1>(.*?)</h1>", page)
    assert found is not None
    return found[1]


def chips(page: str) -> list[tuple[str, str]]:
    """Return each device's colour and owner."""
    return re.findall(r'<div class="chip (\w+)" title="[^"]*"><b>(.*?)</b>', page)


def test_the_headline_counts_every_gpu_once_by_who_has_it() -> None:
    site = quad_8u3()
    free, gpus = (int(each) for each in re.findall(r"\d+(?= )", headline(site_page.html(site))))
    counts = {
        owner: int(number)
        for owner, number in re.findall(r"<li class=\"\w+\">(.*?): <b>(\d+)</b>", site_page.html(site))
    }
    assert gpus == sum(len(host.gpus) for host in site.hosts) == sum(counts.values())
    assert (counts["free"], counts["etl-7"]) == (free, 1)


def test_each_node_of_a_cluster_is_listed_with_its_host() -> None:
    site = quad_8u3()
    vm, host = site.vms[0], site.hosts[2]
    page = site_page.html(
        replace(site, vms=(replace(vm, name="node-03", cluster_mark="train", host=host.ref), *site.vms[1:]))
    )
    assert re.findall(r"<li class=\"\w*\"><b>(.*?)</b> (.*?)</li>", page) == [("node-03", host.name)]


def test_each_owner_has_a_colour_of_its_own_that_is_not_the_free_ones() -> None:
    colours: dict[str, set[str]] = {}
    for colour, owner in chips(site_page.html(quad_8u3())):
        colours.setdefault(owner, set()).add(colour)
    assert colours["free"] == {"free"}
    assert all(len(each) == 1 for each in colours.values())
    assert colours["etl-7"] != colours["free"]


def test_gpu_and_nic_below_one_bridge_are_joined() -> None:
    joined = re.findall(r'<div class="joined" title="below 0000:37:00.0">(.*?)</section>', site_page.html(quad_8u3()))
    assert joined
    assert all('title="0000:3b:00.0"' in each and 'title="0000:3d:00.0"' in each for each in joined)


def test_unused_hosts_that_are_alike_are_one_card_and_keep_their_names() -> None:
    site = unused(quad_8u3())
    page = site_page.html(site)
    assert page.count('<section class="host">') < len(site.hosts)
    assert all(host.name in page for host in site.hosts)


def test_hosts_of_other_memory_are_not_alike() -> None:
    site = unused(quad_8u3())
    first, *others = site.hosts
    larger = replace(site, hosts=(replace(first, memory=Bytes(2 * first.memory)), *others))
    cards = [site_page.html(each).count('<section class="host">') for each in (site, larger)]
    assert cards[1] == cards[0] + 1


@pytest.mark.parametrize("label", ["blue", ""])
def test_gpus_that_are_handed_through_are_counted_too(label: str) -> None:
    site = direct(labels=(label, "", "", ""))
    assert headline(site_page.html(site)).endswith("of 4 GPUs free")


def test_a_gpu_that_cannot_be_given_now_is_neither_free_nor_used() -> None:
    site = unused(quad_8u3())
    host = site.hosts[0]
    shared = tuple(replace(gpu, graphics_type="shared") for gpu in host.gpus)
    page = site_page.html(replace(site, hosts=(replace(host, gpus=shared), *site.hosts[1:])))
    assert [owner for colour, owner in chips(page) if colour == "away"] == ["not usable"] * len(shared)


def test_the_page_fetches_nothing_and_runs_nothing() -> None:
    page = site_page.html(quad_8u3())
    assert not re.search(r"<script|<link|@import|url\(|src=|href=", page)


def test_a_hostile_name_stays_a_name() -> None:
    site = quad_8u3()
    name = '"></text><script>alert(1)</script>\x1b[31m&'
    page = site_page.html(replace(site, hosts=(replace(site.hosts[0], name=name), *site.hosts[1:])))
    assert "<script" not in page
    assert "\x1b" not in page
    assert "&lt;script&gt;" in page
