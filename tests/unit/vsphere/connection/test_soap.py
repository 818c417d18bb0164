"""A cached answer is given again only where the server's bytes are the same."""

from __future__ import annotations

import io
from typing import Any, ClassVar

import pytest
from pyVmomi import vim, vmodl

from vsphere_ml.vsphere.connection import soap, tree_reader
from vsphere_ml.vsphere.connection.soap import Stub, UnexpectedAnswerError

PAGE = """<?xml version="1.0" encoding="UTF-8"?>
<soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/" \
xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xmlns:xsd="http://www.w3.org/2001/XMLSchema">
<soapenv:Body><RetrievePropertiesExResponse xmlns="urn:vim25"><returnval><objects>
<obj type="HostSystem">host-1</obj>
<propSet><name>name</name><val xsi:type="xsd:string">{name}</val></propSet>
</objects></returnval></RetrievePropertiesExResponse></soapenv:Body></soapenv:Envelope>"""
_P: Any = vmodl.query.PropertyCollector


class Response(io.BytesIO):
    status, length = 200, 0

    def getheader(self, _name: str) -> None:
        return None


class Connection:
    """What a server answers to one question after another."""

    answers: ClassVar[list[str]] = []

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def connect(self) -> None:
        pass

    def request(self, *_: Any) -> None:
        pass

    def getresponse(self) -> Response:
        return Response(self.answers.pop(0).encode())

    def close(self) -> None:
        pass


def ask(stub: Stub, moid: str = "host-1") -> Any:
    collector = _P("propertyCollector", stub)
    starts = [_P.ObjectSpec(obj=vim.HostSystem(moid, stub))]
    spec = _P.FilterSpec(objectSet=starts, propSet=[_P.PropertySpec(type=vim.HostSystem, pathSet=["name"])])
    return collector.RetrievePropertiesEx([spec], _P.RetrieveOptions())


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Stub:
    monkeypatch.setattr(Connection, "answers", [])
    return Stub(Connection, {}, 1 << 20, host="vc.lab.test", version="vim.version.v8_0_0_1")  # type: ignore[arg-type]


def names(*found: Any) -> list[str]:
    return [each.objects[0].propSet[0].val for each in found]


def test_the_same_bytes_are_the_same_values_and_others_are_read(stub: Stub) -> None:
    Connection.answers += [PAGE.format(name=each) for each in ("esx-1", "esx-1", "esx-2", "esx-2")]
    with stub.caching_answers():
        found = [ask(stub) for _ in range(4)]
    assert names(*found) == ["esx-1", "esx-1", "esx-2", "esx-2"]
    assert found[0] is found[1] is not found[2]
    assert found[2] is found[3]


def test_nothing_is_cached_for_another_question_or_where_nobody_asked_to(stub: Stub) -> None:
    Connection.answers += [PAGE.format(name="esx-1")] * 4
    with stub.caching_answers():
        first = ask(stub)
        other = ask(stub, "host-2")
    later = ask(stub)
    assert first is not other
    assert later is not first
    with stub.caching_answers():
        assert ask(stub) is first


def test_a_broken_answer_is_refused_after_a_whole_one_and_is_not_cached(stub: Stub) -> None:
    whole = PAGE.format(name="esx-1")
    Connection.answers += [whole, whole[:-40], whole]
    with stub.caching_answers():
        first = ask(stub)
        with pytest.raises(UnexpectedAnswerError):
            ask(stub)
        assert ask(stub) is first


def test_entities_that_the_server_declares_are_not_expanded(stub: Stub) -> None:
    declared = PAGE.replace("?>", '?><!DOCTYPE x [<!ENTITY few "aaaa"><!ENTITY many "&few;&few;&few;&few;">]>', 1)
    usual = PAGE.format(name="a &amp;&#32;b<!-- c --><![CDATA[&many;]]>")
    Connection.answers += [declared.format(name="&many;"), usual]
    with pytest.raises(UnexpectedAnswerError):
        ask(stub)
    assert names(ask(stub)) == ["a & b&many;"]


@pytest.mark.parametrize("largest", [0, 300, 1 << 20])
@pytest.mark.parametrize("piece", [1, 64, 1 << 20])
def test_no_byte_is_missing_of_an_answer_that_is_too_large_for_a_tree(
    stub: Stub, monkeypatch: pytest.MonkeyPatch, largest: int, piece: int
) -> None:
    monkeypatch.setattr(soap, "_PIECE", piece)
    for module in (soap, tree_reader):
        monkeypatch.setattr(module, "LARGEST", largest)
    Connection.answers += [PAGE.format(name="esx-1"), PAGE.format(name="esx-2")[:-40]]
    assert names(ask(stub)) == ["esx-1"]
    with pytest.raises(UnexpectedAnswerError):
        ask(stub)
