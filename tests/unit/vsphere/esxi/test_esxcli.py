"""An esxcli answer that is no answer is an error with a code."""

from __future__ import annotations

from typing import Any

import pytest
from pyVmomi import VmomiSupport, vim

from tests.fakes.stub import Stub, session
from vsphere_ml.core.errors import VSphereError
from vsphere_ml.vsphere.esxi import esxcli

_types: Any = VmomiSupport
_EXECUTER = _types.GetVmodlType("vmodl.reflect.ManagedMethodExecuter")
_RESULT = _types.GetVmodlType("vmodl.reflect.ManagedMethodExecuter.SoapResult")


def listed(response: str | None, *, executer: bool = True) -> list[dict[str, str]]:
    """Return the rows of a command that was answered so."""
    stub = Stub()
    stub.answer("RetrieveManagedMethodExecuter", lambda: _EXECUTER("executer-1", stub) if executer else None)
    stub.answer("ExecuteSoap", lambda *_: _RESULT(response=response))
    return esxcli.run(session(stub), vim.HostSystem("host-7", stub), "system.version.get")


def test_the_rows_of_an_answer_are_read() -> None:
    assert listed("<obj><DataObject><Name>a</Name></DataObject></obj>") == [{"Name": "a"}]
    assert listed(None) == []


def test_a_host_that_offers_no_executer_is_named() -> None:
    with pytest.raises(VSphereError) as caught:
        listed(None, executer=False)
    assert (caught.value.code, caught.value.target) == ("vcenter.no-property", "host-7")


def test_an_answer_that_is_cut_off_is_named() -> None:
    with pytest.raises(VSphereError) as caught:
        listed("<obj><DataObject><Name>a</Na")
    assert (caught.value.code, caught.value.target) == ("vcenter.unexpected-output", "host-7")
