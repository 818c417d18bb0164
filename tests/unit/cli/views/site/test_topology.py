"""The picture of a site: everything that is there is in it, it stands alone, and no name can break out of it."""

from __future__ import annotations

import itertools
import xml.etree.ElementTree as ET
from dataclasses import replace

from tests.fakes.pictures import quad_8u3
from tests.unit.core.sites import direct
from vsphere_ml.cli.views.layout.boxes import Box, size, stack_boxes
from vsphere_ml.cli.views.site import topology

SVG = "{http://www.w3.org/2000/svg}"


def texts(svg: str) -> list[str]:
    return [each.text or "" for each in ET.fromstring(svg).iter(f"{SVG}text")]


def test_every_gpu_nic_bridge_and_user_is_in_the_picture() -> None:
    site = quad_8u3()
    messages = texts(topology.svg(site))
    for host in site.hosts:
        assert host.name in messages
        assert all(f"GPU {gpu.address}" in messages for gpu in host.gpus)
        assert any(text.startswith(f"NIC {host.nics[0].address}") for text in messages)
    assert messages.count("PCIe switch 0000:37:00.0") == len(site.hosts)
    assert "etl-7: 1 × grid_a100-40c" in messages


def test_gpus_that_are_handed_through_are_drawn_with_their_label() -> None:
    messages = texts(topology.svg(direct(labels=("blue", "", "", ""))))
    assert "DirectPath, label blue" in messages
    assert messages.count("DirectPath") == 3


def test_a_hostile_name_stays_a_name() -> None:
    site = quad_8u3()
    name = "</text><script>alert(1)</script>\x1b[31m&"
    site = replace(site, hosts=(replace(site.hosts[0], name=name), *site.hosts[1:]))
    picture = topology.svg(site)
    assert "<script" not in picture
    assert "\x1b" not in picture
    assert any(text.startswith("</text><script>") for text in texts(topology.svg(site)))


def test_boxes_lie_inside_their_box_and_beside_each_other() -> None:
    inner = tuple(Box(title="x" * number, kind="nic", lines=("y",)) for number in (3, 40, 10))
    outer = Box(title="outer", kind="host", lines=("one", "two"), inside=inner)
    rects = [
        tuple(float(each.get(key, "")) for key in ("x", "y", "width", "height"))
        for each in ET.fromstring(f'<svg xmlns="{SVG[1:-1]}">{"".join(stack_boxes([outer]).elements)}</svg>').iter(
            f"{SVG}rect"
        )
    ]
    (x, y, width, height), *rest = rects
    assert (width, height) == size(outer)
    for left, top, wide, high in rest:
        assert x < left < left + wide < x + width
        assert y < top < top + high < y + height
    assert all(one[0] + one[2] < other[0] for one, other in itertools.pairwise(rest))
