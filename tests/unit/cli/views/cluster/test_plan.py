from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, get_args

import pytest

from tests.fakes import pictures, requirements
from tests.fakes.ovf import deployment
from vsphere_ml.cli.terminal import show
from vsphere_ml.cli.views.cluster import changes
from vsphere_ml.cli.views.cluster import plan as view
from vsphere_ml.core.codec import encode
from vsphere_ml.core.diagnostics import Diagnostic, Severity
from vsphere_ml.core.model.inventory import ContentLibraries, LibraryItem, NetworkRef
from vsphere_ml.core.model.placement import Pairing, WantPvrdma
from vsphere_ml.core.model.spec import Source
from vsphere_ml.core.nodes.firstboot import Customization
from vsphere_ml.core.placement.solve import solve
from vsphere_ml.core.plan.changes import Change, CloneVm, PowerOff, PowerOn, SetSettings, SettingDrift, subject
from vsphere_ml.core.plan.describe import object_name
from vsphere_ml.core.plan.diff import diff
from vsphere_ml.core.plan.plan import Plan, Stage

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.golden import Golden
    from tests.unit.cli.conftest import Shown


def fresh(count: int = 2) -> Plan:
    spec, site = requirements.cluster(count), pictures.quad_8u3()
    return diff(spec, solve(spec, site), site)


def text(plan: Plan, shown: Callable[..., Shown]) -> str:
    made = shown()
    show(made.terminal.out, view.text(plan))
    return made.out.getvalue()


def test_a_plan_shows_its_stages_places_and_what_cannot_be_known(shown: Callable[..., Shown], golden: Golden) -> None:
    lines = text(fresh(), shown).splitlines()
    titles = [line for line in lines if line and not line.startswith(" ")]
    assert titles[0] == "folder"
    assert titles.index("clone") < titles.index("devices") < titles.index("power on") < titles.index("placement")
    assert any("known after power-on" in line for line in lines)
    golden(lines[-1])


def test_what_stops_running_comes_first_and_only_there(shown: Callable[..., Shown], golden: Golden) -> None:
    target = next(change.target for change in fresh().changes if hasattr(change, "target"))
    settle = SetSettings(
        vm="node-1", target=target, drift=(SettingDrift("memory reservation", "not locked", "locked"),)
    )
    plan = Plan(
        stages=(
            Stage(title="power off", changes=(PowerOff(vm="node-1"),)),
            Stage(title="settings", changes=(settle,)),
            Stage(title="power on", changes=(PowerOn(vm="node-1"),)),
        )
    )
    lines = text(plan, shown).splitlines()
    golden(lines[0])
    assert lines[1].startswith("   ! node-1: power off")
    assert "power off" not in lines
    golden(lines)
    golden(lines[-1])


def test_a_clone_is_shown_with_its_datastore_and_the_network_of_its_fast_nic(shown: Callable[..., Shown]) -> None:
    message = text(fresh(), shown)
    assert "datastore vsan" in message
    assert "%SameSwitch on roce" in message


def test_a_clone_is_shown_with_its_storage_policy_and_the_librarys_template(golden: Golden) -> None:
    site = pictures.quad_8u3()
    template = next(each for each in site.vms if each.template)
    items = (LibraryItem(name="ubuntu", type="vm-template", vm=template.ref),)
    plain = requirements.cluster(1)
    spec = replace(
        plain,
        location=replace(plain.location, storage_policy="gold"),
        source=Source(library="images", item="ubuntu"),
    )
    there = replace(site, libraries=ContentLibraries(names=("images",), items=items))
    clones = [each for each in diff(spec, solve(spec, there), there).changes if isinstance(each, CloneVm)]
    golden([changes.explain(each) for each in clones])


def test_a_node_with_pvrdma_is_shown_with_its_adapter(shown: Callable[..., Shown]) -> None:
    plan = fresh(1)
    (placement,) = plan.placements
    want = WantPvrdma(network=NetworkRef("dvportgroup-2"), network_name="roce")
    by_software = replace(
        placement, nics=(), pairing=Pairing.GPU_ONLY, target=replace(placement.target, devices=(want,))
    )
    row = next(
        line
        for line in text(replace(plan, placements=(by_software,)), shown).splitlines()
        if line.startswith("node-1 ")
    )
    assert "PVRDMA on roce" in row
    assert "GPU only" not in row


def test_nothing_to_do_is_one_line(shown: Callable[..., Shown], golden: Golden) -> None:
    plan = Plan(stages=(), placements=fresh().placements)
    golden(text(plan, shown))


def test_findings_are_shown_with_what_a_person_can_do_also_when_nothing_is_to_be_done(
    shown: Callable[..., Shown],
    golden: Golden,
) -> None:
    finding = Diagnostic(
        severity=Severity.INFO,
        code="vm.not-in-file",
        target="node-9",
        message="not in the file",
        hint="vsml destroy",
    )
    golden(text(Plan(stages=(), diagnostics=(finding,)), shown))


def test_a_difference_that_vsml_leaves_alone_is_never_nothing_to_do(
    shown: Callable[..., Shown], golden: Golden
) -> None:
    finding = Diagnostic(
        code="vm.not-in-file",
        target="node-9",
        message="not in the file",
    )
    last = text(Plan(stages=(), diagnostics=(finding,)), shown).splitlines()[-1]
    golden(last)


def test_the_last_line_counts_every_thing_that_is_shown(shown: Callable[..., Shown], golden: Golden) -> None:
    from vsphere_ml.core.plan import changes as kinds  # noqa: PLC0415

    every = tuple(each for each in EXAMPLES if subject(each) in {None, "n"})
    plan = Plan(stages=(Stage(title="all", changes=every),))
    last = text(plan, shown).splitlines()[-1]
    golden(last)
    without = tuple(each for each in every if not isinstance(each, kinds.DeleteVm))
    last = text(Plan(stages=(Stage(title="all", changes=without),)), shown).splitlines()[-1]
    golden(last)


def test_many_vms_that_get_the_same_are_one_line(shown: Callable[..., Shown]) -> None:
    plan = Plan(stages=(Stage(title="power on", changes=tuple(PowerOn(vm=f"n-{i:02}") for i in range(1, 65))),))
    assert "   ~ n-[01-64]: power on" in text(plan, shown).splitlines()


def test_a_vms_name_is_not_read_as_markup(shown: Callable[..., Shown]) -> None:
    plan = Plan(stages=(Stage(title="power on", changes=(PowerOn(vm="[bold]x[/bold]"),)),))
    assert "   ~ [bold]x[/bold]: power on" in text(plan, shown).splitlines()


def test_the_data_of_a_plan_is_json_and_names_every_change() -> None:
    plan = fresh()
    found = json.loads(json.dumps(encode(view.data(plan))))
    kinds = [change["change"] for stage in found["stages"] for change in stage["changes"]]
    assert kinds == [type(change).__name__ for change in plan.changes]
    assert found["empty"] is False
    assert [placement["node"] for placement in found["placements"]] == ["node-1", "node-2"]
    assert found["placements"][0]["locality"] == "same PCIe switch"


@pytest.mark.parametrize("kind", get_args(Change), ids=lambda kind: kind.__name__)
def test_every_change_has_its_words(kind: type[Change]) -> None:
    change = next(each for each in EXAMPLES if isinstance(each, kind))
    assert changes.sign(change) in "+~-!"
    assert object_name(change)
    assert changes.verb(change)
    assert changes.explain(change)


def _examples() -> tuple[Change, ...]:
    from vsphere_ml.core.model.inventory import ClusterRef, PoolRef, SwitchRef  # noqa: PLC0415
    from vsphere_ml.core.plan import changes as kinds  # noqa: PLC0415

    own = tuple(fresh().changes)
    clone = next(change for change in own if isinstance(change, kinds.CloneVm))
    marks, target = clone.marks, clone.target
    cluster = ClusterRef("domain-c8")
    return (
        *own,
        deployment(clone),
        kinds.MarkVm(vm="n", marks=marks),
        kinds.MoveToFolder(vm="n", path="ml", was="train"),
        kinds.MoveToPool(vm="n", pool=PoolRef("resgroup-2"), pool_name="ml", was="Resources"),
        kinds.SetSettings(vm="n", target=replace(target, cpus=4), drift=(kinds.SettingDrift("vCPUs", "2", "4"),)),
        kinds.CustomizeGuest(vm="n", customization=Customization(host_name="n", domain="x", spec="lin")),
        kinds.NewMac(vm="n", key=4000, mac="00:50:56:aa:bb:cc"),
        kinds.PowerOff(vm="n"),
        kinds.DeleteVm(vm="n"),
        kinds.DeleteRule(cluster=cluster, name="r", key=1),
        kinds.DeleteFolder(path="train"),
        kinds.SetSwitchMtu(switch=SwitchRef("dvs-1"), name="dvs-gpu", mtu=9000, was=1500),
    )


EXAMPLES = _examples()
