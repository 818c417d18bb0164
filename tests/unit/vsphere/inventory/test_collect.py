from __future__ import annotations

import pytest
from pyVmomi import vim, vmodl

from tests.fakes.stub import Stub, session
from vsphere_ml.core.errors import VSphereError
from vsphere_ml.vsphere.inventory import hosts, vms
from vsphere_ml.vsphere.inventory.collect import climb, collect_below, collect_objects, known_paths

NEW_IN_8 = "config.deviceGroups"


@pytest.mark.parametrize(("version", "asked"), [("7_0_2_0", False), ("8_0_0_1", True), ("9_0_0_0", True)])
def test_a_path_newer_than_the_server_is_not_asked_for(version: str, *, asked: bool) -> None:
    paths = known_paths(vim.VirtualMachine, vms.FULL, f"vim.version.v{version}")
    assert (NEW_IN_8 in paths) is asked
    assert set(paths) >= set(vms.FULL) - {NEW_IN_8}


@pytest.mark.parametrize("kind_paths", [(vim.VirtualMachine, vms.LEAN + vms.FULL), (vim.HostSystem, hosts.DEVICES)])
def test_no_path_reaches_a_whole_config_or_hardware(kind_paths: tuple[type, tuple[str, ...]]) -> None:
    _, paths = kind_paths
    assert {"config", "hardware", "config.hardware", "summary", "runtime", "guest"}.isdisjoint(paths)


def test_every_page_is_fetched() -> None:
    stub = Stub(page=3)
    for number in range(7):
        stub.add(vim.VirtualMachine, f"vm-{number}", {"name": f"n-{number}"})
    rows = list(collect_below(session(stub), vim.Folder("group-d1", stub), {vim.VirtualMachine: ["name"]}))
    assert [props["name"] for _, props in rows] == [f"n-{number}" for number in range(7)]
    assert len(stub.called("ContinueRetrievePropertiesEx")) == 2


def test_a_view_is_destroyed_also_when_the_read_fails() -> None:
    stub = Stub()

    def refuse(*_: object) -> None:
        raise vim.fault.NoPermission

    stub.answer("RetrievePropertiesEx", refuse)
    with pytest.raises(vim.fault.NoPermission):
        list(collect_below(session(stub), vim.Folder("group-d1", stub), {vim.VirtualMachine: ["name"]}))
    assert len(stub.called("DestroyView")) == 1


def test_an_object_that_is_gone_is_left_out() -> None:
    stub = Stub()
    here, gone = stub.add(vim.VirtualMachine, "vm-1", {"name": "n-1"}), vim.VirtualMachine("vm-2", stub)
    assert [props for _, props in collect_objects(session(stub), [here, gone], {vim.VirtualMachine: ["name"]})] == [
        {"name": "n-1"}
    ]


def test_an_object_that_nobody_asked_for_is_an_unexpected_answer() -> None:
    stub = Stub()
    other = vim.VirtualMachine("vm-2", stub)
    found = vmodl.query.PropertyCollector.ObjectContent(obj=other, propSet=[])
    result = vmodl.query.PropertyCollector.RetrieveResult(objects=[found])
    stub.answer("RetrievePropertiesEx", lambda *_: result)
    with pytest.raises(VSphereError) as caught:
        list(collect_objects(session(stub), [vim.VirtualMachine("vm-1", stub)], {vim.VirtualMachine: ["name"]}))
    assert (caught.value.code, caught.value.target) == ("vcenter.unexpected-output", "vm-2")


@pytest.mark.parametrize(("path", "value"), [("config.hardware.memoryMB", "many"), ("name", 7), ("parent", "vm")])
def test_a_property_of_another_type_is_named_with_its_object(path: str, value: object) -> None:
    stub = Stub()
    here = stub.add(vim.VirtualMachine, "vm-1", {path: value})
    with pytest.raises(VSphereError) as caught:
        list(collect_objects(session(stub), [here], {vim.VirtualMachine: [path]}))
    assert (caught.value.code, caught.value.target, path in caught.value.message) == (
        "vcenter.unexpected-output",
        "vm-1",
        True,
    )


def test_an_object_of_another_type_than_those_asked_for_is_named() -> None:
    stub = Stub()
    stub.add(vim.VirtualMachine, "vm-1", {"name": "n-1"})
    rows = vmodl.query.PropertyCollector.RetrieveResult(
        objects=[vmodl.query.PropertyCollector.ObjectContent(obj=vim.alarm.Alarm("alarm-1", stub))]
    )
    stub.answer("RetrievePropertiesEx", lambda *_: rows)
    with pytest.raises(VSphereError) as caught:
        list(collect_below(session(stub), vim.Folder("group-d1", stub), {vim.VirtualMachine: ["name"]}))
    assert (caught.value.code, caught.value.target) == ("vcenter.unexpected-output", "alarm-1")


def test_a_property_without_its_value_is_left_out() -> None:
    stub = Stub()
    here = stub.add(vim.VirtualMachine, "vm-1", {"name": None})
    ((_, props),) = collect_objects(session(stub), [here], {vim.VirtualMachine: ["name"]})
    assert props == {}


def test_a_property_that_vcenter_leaves_out_is_named_with_its_object() -> None:
    stub = Stub()
    here = stub.add(vim.VirtualMachine, "vm-1", {})
    ((_, props),) = collect_objects(session(stub), [here], {vim.VirtualMachine: ["name"]})
    with pytest.raises(VSphereError) as caught:
        props["name"]
    assert (caught.value.code, caught.value.target) == ("vcenter.no-property", "vm-1")
    assert props.get("name") is None


def test_what_stands_above_an_object_is_yielded_up_to_the_topmost() -> None:
    assert [*climb("vm", {"vm": "folder", "folder": "datacenter"}.get)] == ["vm", "folder", "datacenter"]


def test_parents_that_go_round_in_a_circle_are_an_answer_that_cannot_be() -> None:
    with pytest.raises(VSphereError) as raised:
        [*climb("a", {"a": "b", "b": "a"}.get)]
    assert (raised.value.code, raised.value.target) == ("vcenter.unexpected-output", "a")
