"""The plan tells, before anything is written, what the VMs will be."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from tests.fakes import pictures, requirements
from vsphere_ml.cli.terminal import show
from vsphere_ml.cli.views.cluster import plan as view
from vsphere_ml.core.codec import encode
from vsphere_ml.core.model.spec import Address, Latency
from vsphere_ml.core.placement.solve import solve
from vsphere_ml.core.plan.diff import diff
from vsphere_ml.core.units import gib

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.golden import Golden
    from tests.unit.cli.conftest import Shown
    from vsphere_ml.core.model.spec import NodeSpec
    from vsphere_ml.core.plan.plan import Plan


def planned(nodes: tuple[NodeSpec, ...]) -> Plan:
    spec, site = requirements.cluster(nodes), pictures.quad_8u3()
    return diff(spec, solve(spec, site), site)


def block(plan: Plan, shown: Callable[..., Shown], *, every_key: bool = False) -> list[str]:
    """Return the lines between the stages and the places."""
    made = shown()
    show(made.terminal.out, view.text(plan, every_key=every_key))
    lines = made.out.getvalue().splitlines()
    return lines[lines.index("virtual machines") + 1 : lines.index("placement")]


def test_vms_that_are_alike_are_told_once_with_all_that_matters(shown: Callable[..., Shown], golden: Golden) -> None:
    golden(block(planned(requirements.nodes(2, disk=gib(80))), shown))


def test_what_differs_is_told_apart(shown: Callable[..., Shown], golden: Golden) -> None:
    first, second = requirements.nodes(2)
    odd = replace(second, latency=Latency.HIGH, peer_to_peer=False, extra_config={"svga.present": "FALSE"})
    lines = block(planned((first, odd)), shown)
    assert [line.strip() for line in lines if not line.startswith("      ")] == ["node-1", "node-2"]
    of_second = "\n".join(lines[lines.index("   node-2") :])
    golden(of_second)
    assert "svga" not in "\n".join(lines[: lines.index("   node-2")])


def test_verbose_tells_every_key_as_vcenter_has_it(shown: Callable[..., Shown]) -> None:
    plan = planned(requirements.nodes(2))
    texts = block(plan, shown, every_key=True)
    assert texts[0] == "   node-1, node-2"
    for key, value in view.data(plan)["targets"][0]["extra_config"].items():
        assert f"      {key} = {value}" in texts or key == "guestinfo.vsml.node"
    assert not set(texts) <= set(block(plan, shown))


def test_the_data_has_every_vm_with_everything_it_will_be() -> None:
    plan = planned(requirements.nodes(2))
    found = json.loads(json.dumps(encode(view.data(plan))))["targets"]
    assert [each["node"] for each in found] == ["node-1", "node-2"]
    first = found[0]
    assert (first["memory_reservation"], first["memory_reservation_locked"]) == (first["memory"], True)
    assert (first["firmware"], first["hardware_version"], first["latency"]) == ("efi", 20, "normal")
    assert first["extra_config"]["pciPassthru.64bitMMIOSizeGB"] == "128"
    assert first["extra_config"]["guestinfo.vsml.node"] == "node-1"
    assert any(device.startswith("device group ") for device in first["devices"])


def test_static_addresses_that_nobody_tells_the_guests_are_named(shown: Callable[..., Shown], golden: Golden) -> None:
    def notes(plan: Plan) -> str:
        made = shown()
        show(made.terminal.out, view.text(plan))
        return made.out.getvalue().partition("\nnotes\n")[2]

    (node,) = requirements.nodes(1)
    assert "static addresses" not in notes(planned((node,)))
    fixed = replace(node, address=Address(address="10.10.0.11/24"))
    golden(notes(planned((fixed,))))


def test_why_a_node_sits_where_it_does_is_told_of_those_that_change(
    shown: Callable[..., Shown], golden: Golden
) -> None:
    plan = planned(requirements.nodes(2))
    settled = replace(plan.placements[0], why="stands on esx-01.lab.test and keeps its devices")
    rest = tuple(
        replace(stage, changes=tuple(each for each in stage.changes if getattr(each, "vm", "") == "node-2"))
        for stage in plan.stages
    )
    made = shown()
    show(made.terminal.out, view.text(replace(plan, placements=(settled, plan.placements[1]), stages=rest)))
    assert plan.placements[1].why in made.out.getvalue()
    golden(made.out.getvalue())
