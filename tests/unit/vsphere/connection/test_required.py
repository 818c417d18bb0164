"""A value that an answer leaves out is named where it is needed, and is never one that nobody sent."""

from __future__ import annotations

import io
from copy import deepcopy
from typing import Any

import pytest
from pyVmomi import VmomiSupport, vim, vmodl

from vsphere_ml.core.errors import VSphereError
from vsphere_ml.vsphere.connection.required import AnswerSource, fits, require, require_result
from vsphere_ml.vsphere.connection.soap import Stub, UnexpectedAnswerError

_DATASTORES: Any = VmomiSupport.GetVmodlType("vim.Datastore[]")
_ANSWER = """\
<soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/"
 xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xmlns:xsd="http://www.w3.org/2001/XMLSchema"><soapenv:Body>
{body}</soapenv:Body></soapenv:Envelope>"""
_SESSION = """\
<returnval><key>k</key><userName>u</userName><fullName>f</fullName><loginTime>2026-01-01T00:00:00Z</loginTime>
<lastActiveTime>2026-01-01T00:00:00Z</lastActiveTime><locale>en</locale><messageLocale>en</messageLocale></returnval>"""
_CONTENT = """\
<returnval><objects><obj type="HostSystem">host-7</obj><propSet><name>config.pciPassthruInfo</name>
<val xsi:type="ArrayOfHostPciPassthruInfo"><HostPciPassthruInfo><id>{id}</id>
<passthruEnabled>false</passthruEnabled></HostPciPassthruInfo></val></propSet></objects></returnval>"""


class Response(io.BytesIO):
    status, length = 200, 0

    def getheader(self, _name: str) -> None:
        return None


def answered(method: Any, found: Any, body: str) -> Any:
    """Return what a method of an object returns when this is the body of its answer."""
    name = method.info.wsdlName
    entire = body if "Fault>" in body else f'<{name}Response xmlns="urn:vim25">{body}</{name}Response>'
    text = _ANSWER.format(body=entire).encode()

    class Connection:
        def request(self, *_: object) -> None: ...
        def close(self) -> None: ...
        def getresponse(self) -> Response:
            return Response(text)

    stub = Stub(Connection, {}, 1 << 20, version="vim.version.v8_0_3_0")  # type: ignore[arg-type]
    stub.GetConnection, stub.SerializeRequest = Connection, lambda *_: b""
    return stub.InvokeMethod(found(stub), method.info, (None,) * len(method.info.params))


def login(body: str) -> Any:
    return answered(vim.SessionManager.Login, lambda stub: vim.SessionManager("SessionManager", stub), body)


def retrieve(body: str) -> Any:
    kind = vmodl.query.PropertyCollector
    return answered(kind.RetrievePropertiesEx, lambda stub: kind("propertyCollector", stub), body)


def code_of(error: pytest.ExceptionInfo[VSphereError]) -> tuple[str, str]:
    return error.value.code, error.value.target


def test_what_is_there_is_read() -> None:
    assert login(_SESSION).key == "k"


@pytest.mark.parametrize("name", ["key", "locale", "loginTime"])
def test_a_required_value_that_is_left_out_is_named_where_it_is_read(name: str) -> None:
    start, end = _SESSION.index(f"<{name}>"), _SESSION.index(f"</{name}>") + len(f"</{name}>")
    seen = login(_SESSION[:start] + _SESSION[end:])
    assert seen.userName == "u"
    with pytest.raises(VSphereError) as caught:
        getattr(seen, name)
    assert code_of(caught) == ("vcenter.no-property", "SessionManager")
    assert [each in caught.value.message for each in (f"`{name}`", "UserSession", "`Login`")] == [True] * 3
    assert getattr(seen, name, "absent") == "absent"


def test_an_optional_value_that_is_left_out_is_none_until_it_is_required() -> None:
    (info,) = retrieve(_CONTENT.format(id="0000:3b:00.0")).objects[0].propSet[0].val
    assert info.hardwareLabel is None
    with pytest.raises(VSphereError) as caught:
        require(info, "hardwareLabel")
    assert code_of(caught) == ("vcenter.no-property", "host-7")


def test_a_value_of_a_property_is_named_with_the_object_that_it_is_of() -> None:
    (found,) = retrieve(_CONTENT.format(id="0000:3b:00.0")).objects
    (info,) = found.propSet[0].val
    assert (info.id, info.passthruEnabled) == ("0000:3b:00.0", False)
    with pytest.raises(VSphereError) as caught:
        _ = info.passthruCapable
    assert code_of(caught) == ("vcenter.no-property", "host-7")


def test_a_copy_still_names_what_it_lacks_and_what_is_made_here_has_its_defaults() -> None:
    (info,) = retrieve(_CONTENT.format(id="0000:3b:00.0")).objects[0].propSet[0].val
    with pytest.raises(VSphereError):
        _ = deepcopy(info).passthruCapable
    made: Any = vim.host.PciPassthruInfo()
    assert made.passthruCapable is False
    with pytest.raises(AttributeError):
        _ = made.noSuchField


def test_a_fault_keeps_its_defaults_so_that_it_can_be_told() -> None:
    body = (
        "<soapenv:Fault><faultcode>c</faultcode><faultstring>no</faultstring><detail>"
        '<InvalidPowerStateFault xmlns="urn:vim25" xsi:type="InvalidPowerState"/></detail></soapenv:Fault>'
    )
    with pytest.raises(vim.fault.InvalidPowerState) as caught:
        login(body)
    refused: Any = caught.value
    assert refused.existingState is None


def test_an_answer_of_another_type_is_garbled() -> None:
    with pytest.raises(UnexpectedAnswerError):
        login('<returnval xsi:type="HostPciPassthruInfo"/>')


def test_a_result_that_vsml_needs_is_required_by_its_method() -> None:
    host = vim.HostSystem("host-7")
    assert require_result("x", host, "RetrieveManagedMethodExecuter") == "x"
    with pytest.raises(VSphereError) as caught:
        require_result(None, host, "RetrieveManagedMethodExecuter")
    assert code_of(caught) == ("vcenter.no-property", "host-7")


@pytest.mark.parametrize(
    ("value", "declared", "good"),
    [
        (7, int, True),
        ("seven", int, False),
        ("ofTomorrow", vim.VirtualMachine.PowerState, True),
        (7, vim.VirtualMachine.PowerState, False),
        (vim.Datastore("datastore-1"), vim.ManagedEntity, True),
        (vim.Datastore("datastore-1"), vim.HostSystem, False),
        ([vim.Datastore("datastore-1")], _DATASTORES, True),
        ([7], _DATASTORES, False),
        (vim.Datastore("datastore-1"), _DATASTORES, False),
        (AnswerSource("a", "b"), object, True),
    ],
)
def test_what_fits_a_declared_type(value: object, declared: Any, good: bool) -> None:  # noqa: FBT001 - a column
    assert fits(value, declared) is good
