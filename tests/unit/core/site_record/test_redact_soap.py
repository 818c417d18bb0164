"""What of a SOAP message may leave a site."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape

import pytest

from vsphere_ml.core.site_record.pseudonyms import Pseudonyms
from vsphere_ml.core.site_record.redact_soap import SoapRedactor, name_method

XSI = 'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'


def answer(*properties: str) -> str:
    """Return what a PropertyCollector answers; a property is `path=<val>`."""
    pairs = (each.partition("=") for each in properties)
    sets = "".join(f"<propSet><name>{path}</name><val>{value}</val></propSet>" for path, _, value in pairs)
    return (
        f'<e:Envelope xmlns:e="urn:e" {XSI}><e:Body><RetrievePropertiesExResponse><returnval><objects>'
        f'<obj type="HostSystem">host-22</obj>{sets}</objects></returnval></RetrievePropertiesExResponse></e:Body>'
        "</e:Envelope>"
    )


def texts(message: str) -> list[str]:
    return [each.text for each in ET.fromstring(message).iter() if each.text and each.text.strip()]


@pytest.fixture
def redactor() -> SoapRedactor:
    return SoapRedactor(Pseudonyms(key=b"a key for tests"))


def test_listed_fields_pass_and_names_of_people_do_not(redactor: SoapRedactor) -> None:
    device = "<HostPciDevice><id>0000:3b:00.0</id><deviceName>GA100 [A100 PCIe 40GB]</deviceName></HostPciDevice>"
    seen = redactor.redact(answer(f"hardware.pciDevice={device}", "name=esx-01.acme.example"))
    assert {"0000:3b:00.0", "GA100 [A100 PCIe 40GB]", "host-22"} <= set(texts(seen))
    assert not re.search("esx|acme", seen)


def test_one_name_is_one_pseudonym_in_a_record_and_another_in_the_next(redactor: SoapRedactor) -> None:
    first, second = (redactor.redact(answer(f"{path}=lab-esx")) for path in ("name", "summary.name"))
    assert texts(first)[-1] == texts(second)[-1] != texts(SoapRedactor(Pseudonyms()).redact(answer("name=lab-esx")))[-1]


def test_the_same_field_is_judged_by_where_it_stands(redactor: SoapRedactor) -> None:
    of_card = "<VirtualDevice><backing><deviceName>secret network</deviceName></backing></VirtualDevice>"
    assert "secret network" not in redactor.redact(answer(f"config.hardware.device={of_card}"))


@pytest.mark.parametrize(
    "text",
    [
        "10.20.30.40",
        "fe80::1234:5678",
        "00:50:56:9a:bc:de",
        "564d1a2b-3c4d-5e6f-7a8b-9c0d1e2f3a4b",
        "2025-06-01T08:09:10Z",
    ],
)
def test_addresses_and_times_go_also_where_a_field_passes(text: str, redactor: SoapRedactor) -> None:
    seen = redactor.redact(answer(f"config.guestId=of {text} it"))
    assert text not in seen
    assert "of " in seen


def test_a_version_of_four_numbers_is_no_address(redactor: SoapRedactor) -> None:
    assert texts(redactor.redact(answer("config.product.version=8.0.3.0")))[-1] == "8.0.3.0"


def test_a_replaced_number_is_a_number_of_as_many_digits(redactor: SoapRedactor) -> None:
    number = texts(redactor.redact(answer("summary.hardware.otherIdentifyingInfo=-1324521034")))[-1]
    assert re.fullmatch(r"-[1-9]\d{9}", number)
    assert number != "-1324521034"


def test_options_pass_by_their_key(redactor: SoapRedactor) -> None:
    pairs = [("pciPassthru.use64bitMMIO", "TRUE"), ("guestinfo.userdata", "aGVsbG8="), ("acme.owner", "bob")]
    options = "".join(f"<OptionValue><key>{key}</key><value>{value}</value></OptionValue>" for key, value in pairs)
    seen = redactor.redact(answer(f"config.extraConfig={options}"))
    assert {"pciPassthru.use64bitMMIO", "TRUE", "guestinfo.userdata"} <= set(texts(seen))
    assert not re.search("aGVsbG8|acme|bob", seen)


def test_sentences_of_faults_may_name_anything_and_go(redactor: SoapRedactor) -> None:
    fault = "<e:Fault><faultcode>ServerFaultCode</faultcode><faultstring>No host acme-7 in bob.</faultstring></e:Fault>"
    seen = redactor.redact(f"<e:Envelope xmlns:e='urn:e'><e:Body>{fault}</e:Body></e:Envelope>")
    assert "ServerFaultCode" in texts(seen)
    assert not re.search("acme|bob", seen)


def test_passwords_and_tickets_are_struck_out(redactor: SoapRedactor) -> None:
    login = (
        f"<e:Envelope xmlns:e='urn:e' {XSI}><e:Body><Login><userName>bob</userName><password>abc123</password></Login>"
    )
    seen = redactor.redact(f"{login}</e:Body></e:Envelope>")
    assert "***" in texts(seen)
    assert not re.search("bob|abc123", seen)
    assert name_method(seen) == "Login"


def test_xml_within_a_text_is_redacted_too(redactor: SoapRedactor) -> None:
    nested = "<obj><DataObject><Name>atsSupport</Name><Owner>bob</Owner></DataObject></obj>"
    seen = redactor.redact(answer(f"x={escape(nested)}"))
    assert "atsSupport" in seen
    assert "bob" not in seen


def test_what_is_no_xml_is_refused(redactor: SoapRedactor) -> None:
    with pytest.raises(ValueError, match="column"):
        redactor.redact("<html><body>proxy")
