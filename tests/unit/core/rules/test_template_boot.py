"""What the answers of a template's clone mean."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes.requirements import cluster
from vsphere_ml.core.diagnostics import Diagnostic, Severity
from vsphere_ml.core.errors import GuestError
from vsphere_ml.core.model.guest import CommandAnswer
from vsphere_ml.core.model.spec import FirstBootBy, GuestAccess
from vsphere_ml.core.rules.template_boot import PROBES, booted_facts, combine, silent_facts

READY, MISSING, UNKNOWN = Severity.OK, Severity.ERROR, Severity.UNKNOWN
FAILED = CommandAnswer(1, "")
RIGHT = {
    "name": CommandAnswer(0, "node-1-template\n"),
    "tools": CommandAnswer(0, "node-1-template\n"),
    "efi": CommandAnswer(0, "efi\n"),
    "headers": CommandAnswer(0, "/lib/modules/6.8.0-45-generic/build\n"),
    "offered": FAILED,
    "root": CommandAnswer(0, "part\n/dev/sda2\n"),
    "growpart": CommandAnswer(0, "/usr/bin/growpart\n"),
}
DATASOURCE, TOOLS, EFI = "cloud-init's VMware datasource", "VMware Tools", "EFI in the guest"
ROOT, HEADERS = "root file system that grows", "kernel headers"


def judged(changed: dict[str, CommandAnswer], **guest: Any) -> dict[str, Severity]:
    asked = {"first_boot": FirstBootBy.CLOUD_INIT, "playbooks": ("base",), **guest}
    facts = booted_facts({**RIGHT, **changed}, "node-1-template", cluster(1, guest=GuestAccess(**asked)))
    assert all(fact.hint for fact in facts if fact.severity is MISSING)
    return {fact.target: fact.severity for fact in facts}


def test_a_template_that_has_it_all_is_ready() -> None:
    assert RIGHT.keys() == PROBES.keys()
    assert set(judged({}).values()) == {READY}
    assert judged({}).keys() == {"answers by SSH", DATASOURCE, TOOLS, EFI, ROOT, HEADERS}


@pytest.mark.parametrize(
    ("changed", "fact", "verdict"),
    [
        ({"name": CommandAnswer(0, "ubuntu\n")}, DATASOURCE, MISSING),
        ({"tools": FAILED}, TOOLS, MISSING),
        ({"efi": FAILED}, EFI, UNKNOWN),
        ({"root": FAILED}, ROOT, UNKNOWN),
        ({"root": CommandAnswer(0, "lvm\n/dev/mapper/ubuntu--vg-ubuntu--lv\n")}, ROOT, MISSING),
        ({"growpart": FAILED}, ROOT, MISSING),
        ({"headers": CommandAnswer(1, "/lib/modules/6.8.0/build\n")}, HEADERS, MISSING),
        ({"headers": FAILED, "offered": CommandAnswer(0, "  Candidate: 6.8.0-45.45\n")}, HEADERS, READY),
    ],
)
def test_each_answer_is_judged(changed: dict[str, CommandAnswer], fact: str, verdict: Severity) -> None:
    found = judged(changed)
    assert found.pop(fact) is verdict
    assert set(found.values()) == {READY}


def test_what_does_not_matter_is_not_judged() -> None:
    assert not {DATASOURCE, HEADERS} & judged({}, first_boot=FirstBootBy.NONE, playbooks=()).keys()


def test_a_clone_that_nobody_could_enter_says_why() -> None:
    (fact,) = silent_facts(GuestError("no address", code="guest.no-address", hint="look"))
    assert (fact.severity, fact.message, fact.hint) == (MISSING, "no address", "look")


def test_a_boot_tells_more_than_vcenter() -> None:
    known = [Diagnostic(target=name, severity=UNKNOWN, message="-") for name in ("hardware", ROOT)]
    booted = [Diagnostic(target=name, severity=READY, message="seen") for name in (ROOT, "answers by SSH")]
    combined = combine(tuple(known), tuple(booted))
    assert [(fact.target, fact.message) for fact in combined] == [
        ("hardware", "-"),
        (ROOT, "seen"),
        ("answers by SSH", "seen"),
    ]
