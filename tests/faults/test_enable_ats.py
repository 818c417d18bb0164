"""`enable-ats` and its `--revert` on a host, with one answer that is broken, or has one value rewritten.

A broken answer comes at the first call of each kind. Rewritten ones have their turn as in test_rewritten_run.
"""

from __future__ import annotations

import re
import traceback
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

import pytest

from tests.faults.calls import TROUBLES, share
from tests.faults.rewriting import EDITS, edit_one, whose_turn
from tests.integration import labs, proxy
from vsphere_ml.cli.wiring.site_wiring import SystemClock
from vsphere_ml.config.load import load_text
from vsphere_ml.core.errors import VsmlError
from vsphere_ml.core.ports.vcenter import Scope
from vsphere_ml.flows.hosts.ats_hosts import HostsReading, Task
from vsphere_ml.flows.hosts.enable_ats import enable_ats
from vsphere_ml.flows.hosts.host_apply import StepTimeouts
from vsphere_ml.flows.hosts.host_session import HostSession
from vsphere_ml.flows.run_context import RunContext
from vsphere_ml.vsphere.esxi.esx_hosts import EsxHosts
from vsphere_ml.vsphere.gateway import Gateway

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.integration.proxy import Proxy
    from vsphere_ml.flows.hosts.enable_ats import AtsReport

pytestmark = [pytest.mark.lab, pytest.mark.faults]
HOST = "esx-01.lab.test"
_STATE = re.compile(rb'"TaskInfoState">\w+<')
TASK_STATE = "RetrievePropertiesEx PropertyCollector Task info.state"
# What a rewritten answer makes vsml wait for may never come, and all that does comes within seconds.
IMPATIENT = StepTimeouts(shutdown_s=20.0, maintenance_s=20.0, reboot_s=20.0, change_s=20.0)
SPEC = load_text(labs.cluster_file("n", cluster="gpu", gpu='{ profile = "A100-40C" }'))


@pytest.fixture(scope="module")
def between(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    """A proxy before a vSphere 7.0 U2, whose ESXi has `atsSupport` off."""
    with labs.running(tmp_path_factory.mktemp("ats"), "seed-7.0u2") as lab, proxy.before(lab) as made:
        yield made


def run_on_host(
    between: Proxy, *, revert: bool = False, dry_run: bool = False, timeouts: StepTimeouts | None = None
) -> AtsReport:
    session = between.sign_in()
    try:
        return enable_ats(
            HostsReading(
                RunContext(SPEC, Gateway(session), lambda _: None, SystemClock()),
                HostSession(
                    hosts=EsxHosts(session, pause_s=0.05),
                    notify=lambda _: None,
                    timeouts=timeouts or StepTimeouts(),
                ),
                Task(named=(HOST,), revert=revert, dry_run=dry_run),
            ),
            approve=lambda _: True,
        )
    finally:
        session.close()


def settings(report: AtsReport) -> list[tuple[str, str]]:
    return [(fact.name, str(fact.state)) for host in report.facts for fact in host.facts]


def serves(between: Proxy) -> bool:
    gateway = between.gateway()
    try:
        return [(host.connected, host.maintenance) for host in gateway.read_site(Scope()).hosts] == [(True, False)]
    finally:
        gateway.close()


# vsml has no way into the firmware here, and says so at the end of a run in which all else was done.
DONE = {"ats.not-enabled"}
CHANGES = frozenset(
    {
        *("CreateFolder", "SetField", "AddCustomFieldDef", "Destroy_Task", "ExecuteSoap"),
        *("EnterMaintenanceMode_Task", "RebootHost_Task", "ExitMaintenanceMode_Task"),
    }
)


def codes(between: Proxy, *, revert: bool, timeouts: StepTimeouts | None = None) -> set[str]:
    try:
        report = run_on_host(between, revert=revert, timeouts=timeouts)
    except VsmlError as error:
        return {error.code}
    return {report.error.code} if report.error else set()


def kernel(between: Proxy) -> str:
    """Return how the kernel's option stands; it is asked by a session of its own."""
    report = run_on_host(between, dry_run=True)
    return next(state for name, state in settings(report) if name == "atsSupport")


@pytest.fixture(scope="module")
def enabling(between: Proxy) -> Counter[str]:
    """How often each method is called."""
    with between.listening() as calls:
        codes(between, revert=False)
        counts = Counter(calls)
    codes(between, revert=True)
    return counts


def places(counts: Counter[str], fault: str) -> list[tuple[str, int]]:
    """Return the first call of each method, and of the last ones those whose turn it is."""
    last = [(method, count) for method, count in counts.items() if count > 1]
    return [*((method, 1) for method in counts), *share(last, fault)]


@pytest.mark.parametrize("part", range(2))
@pytest.mark.parametrize("trouble", TROUBLES)
def test_ats_is_enabled_and_reverted_by_the_next_run_at_the_latest(
    between: Proxy, enabling: Counter[str], trouble: str, part: int
) -> None:
    wrong = {}
    for method, nth in places(enabling, trouble)[part::2]:
        fair = proxy.dropped if (method, trouble) == (proxy.VERSIONS, "a page") else TROUBLES[trouble]
        for revert, state, good in ((False, "effective", DONE), (True, "not configured", set[str]())):
            with between.breaking(method, fair, nth):
                seen = codes(between, revert=revert)
            if seen != good and method not in CHANGES:
                wrong[method, nth, revert] = seen
            if seen != good:
                assert codes(between, revert=revert) in (good, DONE), (method, nth, revert, seen)
            assert (kernel(between), serves(between)) == (state, True), (method, nth, revert, seen)
    assert wrong == {}


@pytest.fixture(scope="module")
def kinds(between: Proxy) -> list[str]:
    """The kinds of calls of both ways, each once."""
    with between.listening():
        codes(between, revert=False)
        codes(between, revert=True)
        return list(dict.fromkeys(between.kinds))


def bug_of(between: Proxy, *, revert: bool) -> str:
    """Return the end of the traceback of a run that ends in one; nothing when it ends in an error of vsml's."""
    try:
        codes(between, revert=revert, timeouts=IMPATIENT)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is a bug
        return "".join(traceback.format_exception(error)[-2:])
    return ""


@pytest.mark.parametrize("edit", EDITS)
def test_a_rewritten_value_is_no_bug_and_the_next_run_finishes(between: Proxy, kinds: list[str], edit: str) -> None:
    wrong = {}
    for kind in whose_turn(kinds, edit):
        for revert, state, good in ((False, "effective", DONE), (True, "not configured", set[str]())):
            with between.breaking(kind, proxy.edited(partial(edit_one, edit))):
                bug = bug_of(between, revert=revert)
            if bug:
                wrong[kind, revert] = bug
            assert codes(between, revert=revert) in (good, DONE), (kind, revert)
            assert (kernel(between), serves(between)) == (state, True), (kind, revert)
    assert not wrong, "\n".join(f"{kind}, revert {revert}: {bug}" for (kind, revert), bug in wrong.items())


def test_a_host_whose_way_into_maintenance_mode_cannot_be_followed_is_back_in_service(between: Proxy) -> None:
    with between.breaking(TASK_STATE, proxy.edited(lambda body: _STATE.sub(b'"xsd:int">7<', body))) as rule:
        assert codes(between, revert=False) == {"ats.host-failed"}
        assert (rule.done, between.calls.count("EnterMaintenanceMode_Task")) == (1, 1)
    assert serves(between)
