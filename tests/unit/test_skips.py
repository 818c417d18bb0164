"""A skip fails where nothing may be missing, and only what cannot be installed is let pass."""

from __future__ import annotations

import os
import sys

import pytest

from tests import skips
from vsphere_ml.lab.guests import needs


def report(reason: str) -> pytest.TestReport:
    where = ("tests/test_it.py", 7, f"Skipped: {reason}")
    return pytest.TestReport(
        "tests/test_it.py::test_it", ("tests/test_it.py", 7, "test_it"), {}, "skipped", where, "call"
    )


def judged(reason: str) -> str:
    made = report(reason)
    skips.judge(made)
    return made.outcome


@pytest.mark.parametrize("reason", ["no lab guests: lab guests need the Debian packages sudo", "no TensorFlow", ""])
def test_a_skip_for_what_could_be_installed_fails(reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VSML_NO_SKIPS", "1")
    assert judged(reason) == "failed"
    monkeypatch.setenv("VSML_NO_SKIPS", "0")
    assert judged(reason) == "skipped"


@pytest.mark.parametrize("reason", [*skips.UNAVOIDABLE, f"no lab guests: {skips.UNAVOIDABLE[-1]}"])
def test_a_skip_that_nothing_installed_would_mend_stays_one(reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VSML_NO_SKIPS", "1")
    assert judged(reason) == "skipped"


def test_a_failure_expected_is_no_skip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VSML_NO_SKIPS", "1")
    made = report("a bug")
    made.wasxfail = "a bug"
    skips.judge(made)
    assert made.outcome == "skipped"


@pytest.mark.parametrize(
    ("environment", "fails"),
    [
        ({}, False),
        ({"CI": "true"}, True),
        ({"VSML_NO_SKIPS": "1"}, True),
        ({"CI": "true", "VSML_NO_SKIPS": "0"}, False),
    ],
)
def test_ci_switches_it_on(environment: dict[str, str], fails: bool) -> None:  # noqa: FBT001 - a case of it
    assert skips.strict(environment) is fails


def test_guests_name_their_reasons_as_the_list_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert skips.unavoidable(str(needs.missing_need()))
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert skips.unavoidable(str(needs.missing_need()))
