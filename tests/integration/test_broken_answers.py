"""One answer of vCenter's that is dropped, cut, garbled, late or no answer at all, at any call."""

from __future__ import annotations

import gzip
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from tests.faults.calls import codes, provisioned, removed
from tests.integration import proxy
from vsphere_ml.core.errors import VsmlError
from vsphere_ml.core.ports.vcenter import Scope
from vsphere_ml.vsphere.connection import bounds

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from tests.integration.proxy import Proxy, Trouble
    from vsphere_ml.lab.state import Lab

pytestmark = pytest.mark.lab

ONCE = {
    "lost": proxy.lost,
    "dropped": proxy.dropped,
    "cut": proxy.cut,
    "garbled": proxy.garbled,
    "a page": proxy.page,
    "502": proxy.status(502),
    "503": proxy.status(503, passed_on=True),
}


VERSIONS = (
    '<?xml version="1.0" encoding="UTF-8"?><namespaces version="1.0"><namespace><name>urn:vim25</name>'
    "<version>{}</version><priorVersions><version>4.1</version></priorVersions></namespace></namespaces>"
)


@pytest.fixture(scope="module")
def between(lab: Lab) -> Iterator[Proxy]:
    with proxy.before(lab) as made:
        yield made


@pytest.mark.parametrize("trouble", ONCE.values(), ids=ONCE)
def test_a_look_is_mended_on_a_session_that_is_new(lab: Lab, between: Proxy, trouble: Trouble) -> None:
    gateway = between.gateway()
    before = gateway.read_site(Scope())
    with between.breaking("RetrievePropertiesEx", trouble, nth=3) as rule:
        assert gateway.read_site(Scope()) == before
        assert rule.done == 1
        assert between.calls.count("Login") == 1
        gateway.close()
        assert between.calls.count("Logout") == 2


def test_a_late_answer_is_asked_for_again(between: Proxy) -> None:
    session = between.sign_in(timeout_s=3)
    with between.breaking("CurrentTime", proxy.late) as rule:
        assert session.read(session.root.CurrentTime)
        assert rule.done == 1
    session.close()


def time_told(between: Proxy, timeout_s: float = 60) -> datetime:
    """Sign in, read the time and sign out."""
    session = between.sign_in(timeout_s=timeout_s)
    try:
        answers: datetime = session.read(session.root.CurrentTime)
        return answers
    finally:
        session.close()


def refused(between: Proxy, method: str, fault: Trouble, timeout_s: float = 60) -> VsmlError:
    """Return the error of reading the time while every answer to a method is in trouble."""
    with between.breaking(method, fault, nth=None), pytest.raises(VsmlError) as caught:
        time_told(between, timeout_s)
    return caught.value


CALLS = (proxy.VERSIONS, "RetrieveServiceContent", "Login", "CurrentTime")


# Who answers the first question with a page is no vCenter, and is not asked again.
SIGNING_IN = [(call, name) for call in CALLS for name in ONCE if (call, name) != (proxy.VERSIONS, "a page")]


@pytest.mark.parametrize(("method", "name"), SIGNING_IN)
def test_signing_in_is_mended_once(between: Proxy, method: str, name: str) -> None:
    with between.breaking(method, ONCE[name]) as rule:
        assert time_told(between).year
        assert rule.done == 1


@pytest.mark.parametrize("method", [proxy.VERSIONS, "RetrieveServiceContent", "Login"])
@pytest.mark.parametrize(
    ("trouble", "code"),
    [
        (proxy.dropped, "vcenter.unreachable"),
        (proxy.garbled, "vcenter.unexpected-output"),
        (proxy.status(503), "vcenter.unreachable"),
    ],
)
def test_a_vcenter_that_never_answers_well_is_told_as_that(
    between: Proxy, method: str, trouble: Trouble, code: str
) -> None:
    assert refused(between, method, trouble).code == code


@pytest.mark.parametrize("method", CALLS)
def test_a_server_that_drips_is_left(between: Proxy, method: str) -> None:
    assert refused(between, method, proxy.drip, timeout_s=2).code == "vcenter.timeout"


@pytest.mark.parametrize("method", CALLS)
def test_a_server_that_never_ends_is_left(between: Proxy, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "ANSWER_BYTES", bounds.MIB)
    assert refused(between, method, proxy.endless).code == "vcenter.unexpected-output"


def test_an_answer_that_unpacks_to_more_than_an_answer_can_be_is_left(
    between: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "ANSWER_BYTES", bounds.MIB)
    bomb = gzip.compress(b"<a>" + b" " * (2 * bounds.MIB))
    assert refused(between, "RetrieveServiceContent", proxy.packed(bomb)).code == "vcenter.unexpected-output"


@pytest.mark.parametrize("version", ["6.7.3", "5.5"])
def test_a_vcenter_older_than_vsphere_7_is_refused_before_the_password_is_sent(between: Proxy, version: str) -> None:
    error = refused(between, proxy.VERSIONS, proxy.body(VERSIONS.format(version)))
    assert (error.code, error.status) == ("vcenter.too-old", 3)
    assert version in error.message
    assert "Login" not in between.calls


@dataclass
class LostEnd:
    """Reports the first task's end of an object that nobody asked for; all else as it is."""

    lost: int = 0

    def __call__(self, body: bytes) -> bytes:
        if self.lost or b">success</" not in body:
            return body
        self.lost += 1
        return re.sub(rb"(<obj [^>]*>)[^<]+", rb"\g<1>task-of-tomorrow", body)


def with_an_object_that_is_gone(body: bytes) -> bytes:
    return re.sub(rb"(<returnval [^>]*>)[^<]+", rb"\g<1>gone-9999", body)


def test_a_task_whose_end_got_lost_is_asked_for_again(between: Proxy) -> None:
    lose = LostEnd()
    with between.breaking("WaitForUpdatesEx", proxy.edited(lose), nth=None):
        assert codes(lambda: provisioned(between, timeout_s=6)) == set()
    assert lose.lost == 1
    removed(between)


def test_a_collector_that_is_gone_is_made_anew(between: Proxy) -> None:
    with between.breaking("CreatePropertyCollector", proxy.edited(with_an_object_that_is_gone)) as rule:
        assert codes(lambda: provisioned(between)) == set()
        assert rule.done == 1
    removed(between)


def test_a_vcenter_that_keeps_no_collector_is_told_as_that(between: Proxy) -> None:
    with between.breaking("CreatePropertyCollector", proxy.edited(with_an_object_that_is_gone), nth=None):
        assert codes(lambda: provisioned(between)) == {"vsphere.task-lost"}
    assert codes(lambda: provisioned(between)) == set()
    removed(between)


def test_a_task_of_which_nothing_is_told_is_given_up(between: Proxy) -> None:
    with between.breaking("PowerOnVM_Task", proxy.edited(with_an_object_that_is_gone)):
        assert codes(lambda: provisioned(between, timeout_s=6)) == {"provision.incomplete"}
    assert codes(lambda: provisioned(between)) == set()
    removed(between)
