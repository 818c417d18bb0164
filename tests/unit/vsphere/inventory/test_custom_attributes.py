from __future__ import annotations

from typing import Any

from pyVmomi import vim

from tests.fakes.stub import Stub, session
from vsphere_ml.vsphere.inventory.custom_attributes import CustomAttributes

_vim: Any = vim


def definition(key: int, name: str, kind: Any = None) -> Any:
    return _vim.CustomFieldsManager.FieldDef(key=key, name=name, type=str, managedObjectType=kind)


def value(key: int, text: str) -> Any:
    return _vim.CustomFieldsManager.StringValue(key=key, value=text)


def fields(*defined: Any) -> tuple[CustomAttributes, Stub]:
    stub = Stub()
    stub.add(vim.CustomFieldsManager, "CustomFieldsManager", {"field": list(defined)})
    stub.answer("SetField", lambda *_: None)
    made = CustomAttributes(session(stub))
    made.load()
    return made, stub


def test_the_mark_is_read_from_an_attribute_of_any_type() -> None:
    for kind in (None, vim.VirtualMachine):
        made, _ = fields(definition(1, "vsml.cluster", kind))
        assert made.owner([value(3, "other"), value(1, "c")]) == "c"
        assert made.owner(None) is None


def test_an_emptied_attribute_marks_nothing() -> None:
    made, _ = fields(definition(1, "vsml.cluster"))
    assert made.owner([value(1, "")]) is None


def test_an_attribute_that_exists_is_used() -> None:
    made, stub = fields(definition(1, "vsml.cluster"))
    made.mark(vim.VirtualMachine("vm-1", stub), "c")
    assert [tuple(arguments[1:]) for arguments in stub.called("SetField")] == [(1, "c")]
    assert not stub.called("AddCustomFieldDef")


def test_losing_the_race_to_define_an_attribute_uses_the_other_ones() -> None:
    made, stub = fields()

    def somebody_was_first(*_: object) -> None:
        theirs = definition(7, "vsml.cluster", vim.VirtualMachine)
        stub.add(vim.CustomFieldsManager, "CustomFieldsManager", {"field": [theirs]})
        raise vim.fault.DuplicateName

    stub.answer("AddCustomFieldDef", somebody_was_first)
    made.mark(vim.VirtualMachine("vm-1", stub), "c")
    assert [arguments[1] for arguments in stub.called("SetField")] == [7]
