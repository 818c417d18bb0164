"""Every command that reads, and every step of a provision, with one broken answer at each call in turn.

A read is mended and comes to the same; a change that breaks is told as that, and the next run finishes.
"""

from __future__ import annotations

from collections import Counter
from itertools import cycle
from typing import TYPE_CHECKING, Any

import pytest

from tests.integration import labs, proxy
from tests.integration.proxy import Rule
from vsphere_ml.cli.wiring import SystemClock
from vsphere_ml.config.load import load_text
from vsphere_ml.core.errors import VsmlError
from vsphere_ml.core.ports import Scope
from vsphere_ml.flows import profiles as profiles_flow
from vsphere_ml.flows.destroy import destroy
from vsphere_ml.flows.plan import plan
from vsphere_ml.flows.provision import provision
from vsphere_ml.flows.status import status
from vsphere_ml.vsphere import lock
from vsphere_ml.vsphere.esx_hosts import EsxHosts
from vsphere_ml.vsphere.gateway import Gateway
from vsphere_ml.vsphere.privileges import missing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.integration.proxy import Proxy, Trouble
    from vsphere_ml.flows.report import Report
    from vsphere_ml.lab.state import Lab
    from vsphere_ml.vsphere.session import Session

pytestmark = pytest.mark.lab

SPEC = load_text(labs.cluster_file("n", cluster="gpu", gpu='{ profile = "A100-40C" }'))
TROUBLES = {
    "lost": proxy.lost,
    "dropped": proxy.dropped,
    "cut": proxy.cut,
    "garbled": proxy.garbled,
    "a page": proxy.page,
    "502": proxy.status(502),
    "503 afterwards": proxy.status(503, passed_on=True),
}
# Calls that change something and are not made twice: what became of them is not known when their answer is lost.
CHANGES = frozenset(
    {
        "CreateFolder",
        "CloneVM_Task",
        "UpgradeVM_Task",
        "ReconfigVM_Task",
        "PowerOnVM_Task",
        "SetField",
        "AddCustomFieldDef",
        "Destroy_Task",
    }
)
AS_MUCH = frozenset({"vcenter.interrupted", "provision.incomplete"})


@pytest.fixture(scope="module")
def between(lab: Lab) -> Iterator[Proxy]:
    with proxy.before(lab) as made:
        yield made


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lock that was made and never signed is waited for ten seconds otherwise."""
    monkeypatch.setattr(lock, "_UNSIGNED_S", 1.0)


def hosts_seen(session: Session) -> Any:
    refs = [host.ref for host in Gateway(session).look(Scope(direct_path=True)).hosts]
    return EsxHosts(session).see(refs)


def looked(scope: Scope) -> Callable[[Session], Any]:
    return lambda session: Gateway(session).look(scope)


def planned(session: Session) -> Any:
    return plan(SPEC, Gateway(session), tell=lambda _: None, clock=SystemClock()).plan


def told(session: Session) -> Any:
    return status(SPEC, Gateway(session), tell=lambda _: None, clock=SystemClock())


def managers(session: Session) -> Any:
    gateway = Gateway(session)
    return gateway.vgpu_managers([host.ref for host in gateway.look(Scope()).hosts])


READS: dict[str, Callable[[Session], Any]] = {
    "inventory and topology": looked(Scope(direct_path=True)),
    "everything of hosts": looked(Scope(direct_path=True, pvrdma=True, roce=True)),
    "plan": planned,
    "status": told,
    "profiles": lambda session: profiles_flow.profiles(Gateway(session), None),
    "doctor": missing,
    "verify": managers,
    "enable-ats --check": hosts_seen,
}


def answer(between: Proxy, read: Callable[[Session], Any]) -> Any:
    session = between.sign_in()
    try:
        return read(session)
    finally:
        session.close()


def calls_of(between: Proxy, run: Callable[[], Any]) -> list[str]:
    with between.listening() as calls:
        run()
        return list(calls)


@pytest.mark.parametrize(("name", "trouble"), list(zip(READS, cycle(TROUBLES.values()), strict=False)), ids=READS)
def test_each_read_is_mended_in_the_middle(between: Proxy, name: str, trouble: Trouble) -> None:
    good = answer(between, READS[name])
    middle = len(calls_of(between, lambda: answer(between, READS[name]))) // 2
    with between.breaking("*", trouble, nth=middle) as rule:
        assert answer(between, READS[name]) == good
        assert rule.done == 1


def test_a_read_is_mended_at_the_first_call_of_each_kind(between: Proxy) -> None:
    read = READS["everything of hosts"]
    good = answer(between, read)
    kinds = Counter(calls_of(between, lambda: answer(between, read)))
    for method, trouble in zip(kinds, cycle(TROUBLES.values()), strict=False):
        with between.breaking(method, _fair(method, trouble)) as rule:
            assert answer(between, read) == good, method
            assert rule.done == 1


@pytest.mark.long
@pytest.mark.timeout(7200)  # some ninety runs
@pytest.mark.parametrize("trouble", TROUBLES)
@pytest.mark.parametrize("name", READS)
def test_a_read_is_mended_at_every_call(between: Proxy, name: str, trouble: str) -> None:
    good = answer(between, READS[name])
    calls = calls_of(between, lambda: answer(between, READS[name]))
    for number, method in enumerate(calls, start=1):
        with between.breaking("*", _fair(method, TROUBLES[trouble]), nth=number):
            assert answer(between, READS[name]) == good, (number, method)


def _fair(method: str, trouble: Trouble) -> Trouble:
    # Who answers the first question with a page is no vCenter.
    return proxy.dropped if method == proxy.VERSIONS and trouble is proxy.page else trouble


def provisioned(between: Proxy, timeout_s: float = 60) -> Report:
    gateway = between.gateway(timeout_s=timeout_s)
    try:
        return provision(SPEC, gateway, approve=lambda _: True, tell=lambda _: None, clock=SystemClock())
    finally:
        gateway.close()


def removed(between: Proxy) -> None:
    gateway = between.gateway()
    try:
        assert destroy(SPEC, gateway, approve=lambda _: True, tell=lambda _: None, clock=SystemClock()).done
        left = gateway.look(Scope())
        assert {vm.name for vm in left.vms if vm.cluster_mark == SPEC.name} == set()
        assert {folder.path for folder in left.folders if folder.path} == set()
    finally:
        gateway.close()


def codes(between: Proxy, timeout_s: float = 60) -> set[str]:
    """Provision, and return the codes of what went wrong; none when all is done."""
    try:
        report = provisioned(between, timeout_s)
    except VsmlError as error:
        return {error.code}
    assert report.done or report.error is not None
    return {report.error.code} if report.error else set()


def finished(between: Proxy) -> None:
    """Provision once more, see that it is done then, and remove everything."""
    assert codes(between) == set()
    removed(between)


WAITING = ("CreatePropertyCollector", "CreateFilter", "WaitForUpdatesEx", "DestroyPropertyFilter")


def test_tasks_stay_watched_whatever_breaks_in_waiting_for_them(between: Proxy) -> None:
    """Each rule breaks another wait: of the clone, the upgrade, the settings and the power-on."""
    rules = [
        Rule(method, trouble, nth)
        for nth, (method, trouble) in enumerate(zip(WAITING, TROUBLES.values(), strict=False), start=1)
    ]
    with between.breaking_all(rules):
        assert codes(between) == set()
        assert [rule.done for rule in rules] == [1] * len(WAITING)
        assert between.calls.count("CloneVM_Task") == 1
    removed(between)


def test_tasks_stay_watched_when_an_answer_is_late(between: Proxy) -> None:
    with between.breaking("WaitForUpdatesEx", proxy.late) as rule:
        assert codes(between, timeout_s=8) == set()
        assert rule.done == 1
    removed(between)


@pytest.mark.parametrize(
    ("method", "nth", "trouble", "told"),
    [
        ("CreateFolder", 1, "dropped", {"vcenter.interrupted"}),  # the lock
        ("CreateFolder", 2, "dropped", set()),  # the cluster's own, which is looked for and marked
        ("CreateFolder", 2, "lost", set()),
        ("CloneVM_Task", 1, "dropped", {"provision.incomplete"}),
        ("PowerOnVM_Task", 1, "503 afterwards", {"provision.incomplete"}),
    ],
)
def test_a_change_that_breaks_is_told_and_the_next_run_finishes(
    between: Proxy, method: str, nth: int, trouble: str, told: set[str]
) -> None:
    with between.breaking(method, TROUBLES[trouble], nth):
        assert codes(between) == told
    finished(between)


@pytest.mark.long
@pytest.mark.timeout(7200)  # some ninety runs
@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_provision_with_a_broken_answer_at_any_call_is_mended_or_finished_by_the_next(
    between: Proxy, trouble: str
) -> None:
    calls = calls_of(between, lambda: provisioned(between))
    removed(between)
    for number, method in enumerate(calls, start=1):
        with between.breaking("*", _fair(method, TROUBLES[trouble]), nth=number):
            gone_wrong = codes(between)
        assert gone_wrong <= (AS_MUCH if method in CHANGES else set()), (number, method)
        finished(between)
