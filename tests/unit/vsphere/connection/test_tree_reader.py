"""What the reader of trees makes of an answer is what pyvmomi's own reader makes of it, or nothing."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import pytest
from pyVmomi import SoapAdapter, VmomiSupport, vmodl

from vsphere_ml.vsphere.connection import tree_reader
from vsphere_ml.vsphere.connection.required import AnswerSource, NoPropertyError
from vsphere_ml.vsphere.connection.tree_reader import read_tree
from vsphere_ml.vsphere.connection.value_reader import ValueReader

_soap: Any = SoapAdapter
_types: Any = VmomiSupport
RESULT = vmodl.query.PropertyCollector.RetrieveResult
ENVELOPE = (
    '<?xml version="1.0" encoding="UTF-8"?><soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/"'
    ' xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xmlns:xsd="http://www.w3.org/2001/XMLSchema"><soapenv:Body>'
    '<RetrievePropertiesExResponse xmlns="urn:vim25"><returnval>{}</returnval></RetrievePropertiesExResponse>'
    "</soapenv:Body></soapenv:Envelope>"
)
OBJECT = '<objects><obj type="{kind}">x-1</obj><propSet><name>{name}</name>{value}</propSet></objects>'
VALUES = {
    "text": '<val xsi:type="xsd:string">a &amp; b</val>',
    "empty text": '<val xsi:type="xsd:string"></val>',
    "text with a comment": '<val xsi:type="xsd:string">a<!-- c -->b</val>',
    "text in a section": '<val xsi:type="xsd:string"><![CDATA[<a>]]></val>',
    "number": '<val xsi:type="xsd:int">-7</val>',
    "long number": '<val xsi:type="xsd:long">9223372036854775807</val>',
    "truth": '<val xsi:type="xsd:boolean">1</val>',
    "date": '<val xsi:type="xsd:dateTime">2026-11-28T01:02:03.5Z</val>',
    "bytes": '<val xsi:type="xsd:base64Binary">aGk=</val>',
    "word": '<val xsi:type="HostSystemConnectionState">connected</val>',
    "unknown word": '<val xsi:type="HostSystemConnectionState">asleep</val>',
    "reference": '<val xsi:type="ManagedObjectReference" type="Folder">group-1</val>',
    "texts": '<val xsi:type="ArrayOfString"><string>a</string><string>b</string></val>',
    "no texts": '<val xsi:type="ArrayOfString"/>',
    "references": '<val xsi:type="ArrayOfManagedObjectReference"><ManagedObjectReference type="Datastore" '
    'xsi:type="ManagedObjectReference">ds-1</ManagedObjectReference></val>',
    "devices": '<val xsi:type="ArrayOfVirtualDevice"><VirtualDevice xsi:type="VirtualE1000e"><key>4000</key>'
    "<deviceInfo><label>NIC</label><summary>x</summary></deviceInfo><backing xsi:type="
    '"VirtualEthernetCardNetworkBackingInfo"><deviceName>VM Network</deviceName></backing><addressType>manual'
    '</addressType></VirtualDevice><VirtualDevice xsi:type="VirtualPCIPassthrough"><key>1</key></VirtualDevice></val>',
    "options": '<val xsi:type="ArrayOfOptionValue"><OptionValue xsi:type="OptionValue"><key>a</key><value xsi:type='
    '"xsd:string">b</value></OptionValue><OptionValue><key>n</key><value xsi:type="xsd:int">1</value>'
    "</OptionValue></val>",
    "prefix of no meaning": '<val xsi:type="none:string">a</val>',
    "object": '<val xsi:type="ResourceAllocationInfo"><reservation>5</reservation><shares><shares>1</shares><level>low'
    "</level></shares></val>",
}
# What a tree's reader leaves to the other, which may take it or refuse it.
LEFT = {
    "unknown type": '<val xsi:type="NoSuchType"><a>1</a></val>',
    "unknown field": '<val xsi:type="ResourceAllocationInfo"><newer>5</newer></val>',
    "fault": '<val xsi:type="LocalizedMethodFault"><fault xsi:type="NoPermission"><privilegeId>x'
    "</privilegeId></fault></val>",
    "element in a text": '<val xsi:type="xsd:string">a<b>c</b></val>',
    "wrong number": '<val xsi:type="xsd:int">seven</val>',
    "prefix of another meaning": '<val xmlns:xsd="urn:vim25" xsi:type="xsd:ResourceAllocationInfo"/>',
    "foreign attribute": '<val xsi:type="ManagedObjectReference" type="Folder" serverGuid="g">group-1</val>',
}


class Stub:
    """What both readers ask of the end of the wire."""

    version = _types.newestVersions.Get("vim")

    @staticmethod
    def SupportServerGUIDs() -> bool:  # noqa: N802 - pyvmomi's name
        return True


def answer(*values: str, kind: str = "HostSystem", more: str = "") -> bytes:
    objects = "".join(OBJECT.format(kind=kind, name=f"p{at}", value=value) for at, value in enumerate(values))
    return ENVELOPE.format(objects + more).encode()


def by_tree(text: bytes) -> Any:
    return read_tree(text, RESULT, Stub(), AnswerSource("collector", "RetrievePropertiesEx"))


def by_stream(text: bytes) -> Any:
    reader = _soap.SoapResponseDeserializer(Stub())
    reader.deser = ValueReader(Stub(), AnswerSource("collector", "RetrievePropertiesEx"))
    return reader.Deserialize(BytesIO(text), RESULT)


def same(one: Any, other: Any) -> bool:
    """Return whether two values are alike in all that they hold, and in the object that they are of."""
    if type(one) is not type(other):
        return False
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, _types.DataObject):
        ours, theirs = vars(one), vars(other)
        return ours.keys() == theirs.keys() and all(same(value, theirs[name]) for name, value in ours.items())
    if isinstance(one, _types.ManagedObject):
        return bool(one._GetMoId() == other._GetMoId())
    return bool(one == other)


@pytest.fixture(autouse=True)
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_reader, "_known", {})


@pytest.mark.parametrize("name", VALUES)
def test_a_value_is_read_as_pyvmomi_reads_it(name: str) -> None:
    text = answer(VALUES[name], VALUES[name])
    first, again = by_tree(text), by_tree(text)
    assert first is not None
    assert same(first, by_stream(text))
    assert same(again, first)


def test_an_answer_with_everything_is_read_as_pyvmomi_reads_it() -> None:
    text = answer(*VALUES.values(), more="<token>next</token>")
    assert same(by_tree(text), by_stream(text))
    assert by_tree(text).token == "next"


@pytest.mark.parametrize("name", LEFT)
def test_what_is_out_of_the_ordinary_is_left_to_the_other_reader(name: str) -> None:
    assert by_tree(answer(VALUES["text"], LEFT[name])) is None
    assert by_tree(answer(VALUES["text"])) is not None


def test_an_attribute_that_comes_later_is_not_passed_over() -> None:
    assert by_tree(answer(VALUES["reference"])) is not None
    assert by_tree(answer(LEFT["foreign attribute"])) is None


WITH_ENTITY = answer(VALUES["text"]).replace(b"?>", b'?><!DOCTYPE x [<!ENTITY e "b">]>', 1)


@pytest.mark.parametrize(
    "text",
    [
        *(b"", b"<html>no</html>", answer(VALUES["text"])[:-20]),
        ENVELOPE.format("").replace("Response", "Fault").encode(),
        answer(VALUES["text"]).replace(b"soapenv:Body", b"RetrievePropertiesExResponse"),
        WITH_ENTITY,
        WITH_ENTITY.decode().replace("UTF-8", "UTF-16").encode("utf-16"),
    ],
    ids=["nothing", "a page", "cut off", "a fault", "an answer around an answer", "entities", "entities in UTF-16"],
)
def test_what_is_no_answer_is_left_to_the_other_reader(text: bytes) -> None:
    assert by_tree(text) is None


def test_a_large_answer_is_left_to_the_other_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    text = answer(VALUES["text"])
    monkeypatch.setattr(tree_reader, "LARGEST", len(text) - 1)
    assert by_tree(text) is None


def test_what_a_server_varies_at_will_is_not_remembered_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_reader, "_MOST_PREFIXES", 2)
    monkeypatch.setattr(tree_reader, "_MOST_OPENINGS", 3)
    for at in range(4):
        values = [f'<val xmlns:p{at}="urn:{at}" xsi:type="xsd:string" type="{each}">a</val>' for each in range(5)]
        text = answer(*values)
        assert same(by_tree(text), by_stream(text))
    sizes = [len(openings) for known in tree_reader._known.values() for openings in known.values()]
    assert len(tree_reader._known) == 2
    assert max(sizes) == 3


def test_a_value_that_is_left_out_is_named_with_the_object_that_it_would_be_of() -> None:
    text = answer(VALUES["object"]).replace(b"x-1", b"host-1")
    text = text.replace(b"<shares><shares>1</shares>", b"<shares>")
    for read in (by_tree, by_stream):
        with pytest.raises(NoPropertyError, match="host-1") as caught:
            _ = read(text).objects[0].propSet[0].val.shares.shares
        assert caught.value.target == "host-1"
