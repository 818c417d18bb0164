"""A gate's checks as JUnit XML, which CI servers show."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from vsphere_ml.core.diagnostics import Severity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vsphere_ml.bench.gate.gate import GateCheck

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def xml(checks: Sequence[GateCheck]) -> str:
    """Return one test case a check; what is undecided is an error, not a failure."""
    suite = ET.Element(
        "testsuite",
        name="vsml bench gate",
        tests=str(len(checks)),
        failures=str(sum(each.severity is Severity.ERROR for each in checks)),
        errors=str(sum(each.severity is Severity.UNKNOWN for each in checks)),
    )
    for each in checks:
        _case(suite, each)
    ET.indent(suite)
    return ET.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def _case(suite: ET.Element, check: GateCheck) -> None:
    case = ET.SubElement(suite, "testcase", classname=f"vsml.bench.{check.kind}", name=_clean(check.target))
    match check.severity:
        case Severity.OK:
            ET.SubElement(case, "system-out").text = _clean(check.message)
        case Severity.ERROR:
            ET.SubElement(case, "failure", message=_clean(check.message))
        case Severity.UNKNOWN:
            ET.SubElement(case, "error", message=_clean(check.message))


def _clean(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)
