"""A host that vCenter shows as connected and that does not answer: it costs itself, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.integration import labs, proxy
from vsphere_ml.cli.wiring.site_wiring import SystemClock
from vsphere_ml.config.load import load_text
from vsphere_ml.core.errors import NotPossible
from vsphere_ml.core.model.esxi_state import HostConnection
from vsphere_ml.core.model.inventory import ComponentKind
from vsphere_ml.core.ports.vcenter import Scope
from vsphere_ml.flows.cluster.plan import plan
from vsphere_ml.flows.run_context import RunContext
from vsphere_ml.vsphere.esxi.esx_hosts import EsxHosts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.integration.proxy import Proxy, Trouble
    from vsphere_ml.lab.state import Lab

pytestmark = pytest.mark.lab
GPU = '{ profile = "A100-40C" }'


@pytest.fixture(scope="module")
def between(lab: Lab) -> Iterator[Proxy]:
    with proxy.before(lab) as made:
        yield made


SILENT = {
    "not connected": proxy.fault("HostNotConnected"),
    "not reachable": proxy.fault("HostNotReachable"),
    "communication": proxy.fault("HostCommunication"),
    "system error": proxy.fault("SystemError"),
    "timed out": proxy.fault("Timedout"),
}
QUESTIONS = (
    "RetrieveVendorDeviceGroupInfo",
    "RetrieveVgpuProfileInfo",
    "QueryOptions",
    "QueryConfiguredModuleOptionString",
)


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_host_that_does_not_answer_one_question_costs_itself_only(between: Proxy, question: str) -> None:
    gateway = between.gateway()
    scope = Scope(direct_path=True, pvrdma=True, roce=True)
    before = {host.name: host for host in gateway.read_site(scope).hosts}
    with between.breaking(question, SILENT["not connected"]):
        site = gateway.read_site(scope)
    gateway.close()
    silent = [host for host in site.hosts if host.no_answer]
    assert [host.connected for host in silent] == [False]
    assert "HostNotConnected" in silent[0].no_answer
    assert all(host == before[host.name] for host in site.hosts if host not in silent)


@pytest.mark.parametrize("trouble", SILENT.values(), ids=SILENT)
def test_nothing_is_placed_on_a_host_that_does_not_answer_and_the_plan_names_it(
    between: Proxy, trouble: Trouble
) -> None:
    spec = load_text(labs.cluster_file("silent", cluster="gpu", gpu=GPU))
    gateway = between.gateway()
    placement = plan(RunContext(spec, gateway, lambda _: None, SystemClock())).plan.placements[0]
    with between.breaking("RetrieveVendorDeviceGroupInfo", trouble, nth=None, words=f"-{placement.host}<"):
        found = plan(RunContext(spec, gateway, lambda _: None, SystemClock())).plan
    gateway.close()
    assert [(each.code, each.target) for each in found.diagnostics] == [("host.no-answer", placement.host_name)]
    assert found.placements[0].host != placement.host


def test_a_site_without_a_host_that_answers_says_why_of_each(between: Proxy) -> None:
    spec = load_text(labs.cluster_file("silent", cluster="gpu", gpu=GPU))
    gateway = between.gateway()
    silent = between.breaking("RetrieveVendorDeviceGroupInfo", SILENT["system error"], nth=None)
    with silent, pytest.raises(NotPossible) as refusal:
        plan(RunContext(spec, gateway, lambda _: None, SystemClock()))
    gateway.close()
    assert sum("SystemError" in each for each in refusal.value.details) == 4


def test_a_host_that_keeps_vcenter_waiting_costs_itself_only(between: Proxy) -> None:
    gateway = between.gateway(timeout_s=3)
    ref = gateway.read_site(Scope()).hosts[1].ref
    with between.breaking("RetrieveVendorDeviceGroupInfo", proxy.late, nth=None, words=f"-{ref}<"):
        site = gateway.read_site(Scope())
    gateway.close()
    assert [host.ref for host in site.hosts if host.no_answer] == [ref]


def test_a_look_at_the_hosts_themselves_goes_on_without_one(between: Proxy) -> None:
    gateway, session = between.gateway(), between.sign_in()
    refs = [host.ref for host in gateway.read_site(Scope()).hosts]
    with between.breaking("QueryConfiguredModuleOptionString", SILENT["not reachable"]):
        seen = EsxHosts(session).see(refs)
    gateway.close()
    session.close()
    assert sorted(each.connection for each in seen.values()).count(HostConnection.NOT_RESPONDING) == 1
    assert len(seen) == len(refs)


def test_a_value_that_an_enumeration_of_the_api_does_not_have_is_carried(between: Proxy) -> None:
    gateway, session = between.gateway(), between.sign_in()
    with between.breaking("RetrievePropertiesEx", proxy.rewritten(">connected<", ">quiesced<"), nth=None):
        site = gateway.read_site(Scope())
        seen = EsxHosts(session).see([host.ref for host in site.hosts])
    gateway.close()
    session.close()
    assert {host.connected for host in site.hosts} == {False}
    assert {str(each.connection) for each in seen.values()} == {"quiesced"}


def test_a_component_of_an_unknown_kind_is_carried_and_named(between: Proxy) -> None:
    gateway = between.gateway()
    with between.breaking("RetrieveVendorDeviceGroupInfo", proxy.rewritten(">sriovNic<", ">quantumNic<"), nth=None):
        site = gateway.read_site(Scope())
    gateway.close()
    kinds = {part.kind for host in site.hosts for group in host.groups for part in group.components}
    assert ComponentKind("quantumNic") in kinds
