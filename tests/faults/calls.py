"""What is run against a vCenter whose answers break: every command that reads, and a cluster's way up and down.

Each broken answer is the n-th of a run, n counting up until a run has fewer calls: so no position is left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from tests.integration import labs, proxy
from vsphere_ml.cli.wiring.site_wiring import SystemClock
from vsphere_ml.config.load import load_text
from vsphere_ml.core.errors import VsmlError
from vsphere_ml.core.ports.vcenter import Scope
from vsphere_ml.flows import profiles as profiles_flow
from vsphere_ml.flows.cluster.destroy import destroy
from vsphere_ml.flows.cluster.plan import plan
from vsphere_ml.flows.cluster.provision import provision
from vsphere_ml.flows.cluster.status import status
from vsphere_ml.vsphere.esxi.esx_hosts import EsxHosts
from vsphere_ml.vsphere.gateway import Gateway
from vsphere_ml.vsphere.privileges import missing_privileges

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.integration.proxy import Proxy, Trouble
    from vsphere_ml.flows.cluster.report import Report
    from vsphere_ml.vsphere.connection.session import Session

T = TypeVar("T")
SPEC = load_text(labs.cluster_file("n", cluster="gpu", gpu='{ profile = "A100-40C" }'))
# The first of its nodes is the one of SPEC, so that a plan of it compares what stands and places what does not.
LARGER = load_text(labs.cluster_file("n", cluster="gpu", gpu='{ profile = "A100-40C" }', nodes=2))
TROUBLES = {
    "lost": proxy.lost,
    "dropped": proxy.dropped,
    "cut": proxy.cut,
    "garbled": proxy.garbled,
    "a page": proxy.page,
    "502": proxy.status(502),
    "503 afterwards": proxy.status(503, passed_on=True),
}
# Held back: each costs the whole timeout, so these are for the ring that has hours.
LATE = {"late": proxy.late}
TIMEOUT_S = 60.0
SHORT_TIMEOUT_S = 6.0  # longer than an honest answer of a lab takes, on a busy machine either
# Calls that change something and are not made twice: what became of them is not known when their answer is lost.
CHANGES = frozenset(
    {
        "CreateFolder",
        "CloneVM_Task",
        "UpgradeVM_Task",
        "ReconfigVM_Task",
        "PowerOnVM_Task",
        "PowerOffVM_Task",
        "SetField",
        "AddCustomFieldDef",
        "Destroy_Task",
    }
)
# Nobody is asked again who let the first question wait for the whole of the timeout.
SIGN_IN = frozenset({proxy.VERSIONS, "RetrieveServiceContent", "Login"})


def hosts_seen(session: Session) -> Any:
    refs = [host.ref for host in Gateway(session).look(Scope(direct_path=True)).hosts]
    return EsxHosts(session).see(refs)


def look_at(scope: Scope) -> Callable[[Session], Any]:
    return lambda session: Gateway(session).look(scope)


def read_plan(session: Session) -> Any:
    return plan(SPEC, Gateway(session), tell=lambda _: None, clock=SystemClock()).plan


def read_status(session: Session) -> Any:
    return status(SPEC, Gateway(session), tell=lambda _: None, clock=SystemClock())


def read_vgpu_managers(session: Session) -> Any:
    gateway = Gateway(session)
    return gateway.vgpu_managers([host.ref for host in gateway.look(Scope()).hosts])


READS: dict[str, Callable[[Session], Any]] = {
    "inventory and topology": look_at(Scope(direct_path=True)),
    "everything of hosts": look_at(Scope(direct_path=True, pvrdma=True, roce=True)),
    "plan": read_plan,
    "status": read_status,
    "profiles": lambda session: profiles_flow.profiles(Gateway(session), None),
    "doctor": missing_privileges,
    "verify": read_vgpu_managers,
    "enable-ats --check": hosts_seen,
}


def answer(between: Proxy, read: Callable[[Session], Any], timeout_s: float = TIMEOUT_S) -> Any:
    session = between.sign_in(timeout_s=timeout_s)
    try:
        return read(session)
    finally:
        session.close()


def result(run: Callable[[], Any]) -> Any:
    """Return what a run comes to: what it returns, or the code of its error."""
    try:
        return run()
    except VsmlError as error:
        return error.code


def provisioned(between: Proxy, timeout_s: float = TIMEOUT_S) -> Report:
    gateway = between.gateway(timeout_s=timeout_s)
    try:
        return provision(SPEC, gateway, approve=lambda _: True, tell=lambda _: None, clock=SystemClock())
    finally:
        gateway.close()


def destroyed(between: Proxy, timeout_s: float = TIMEOUT_S) -> Report:
    gateway = between.gateway(timeout_s=timeout_s)
    try:
        return destroy(SPEC, gateway, approve=lambda _: True, tell=lambda _: None, clock=SystemClock())
    finally:
        gateway.close()


def removed(between: Proxy) -> None:
    """Destroy the cluster, and see that nothing of it is left."""
    gateway = between.gateway()
    try:
        assert destroy(SPEC, gateway, approve=lambda _: True, tell=lambda _: None, clock=SystemClock()).done
        left = gateway.look(Scope())
    finally:
        gateway.close()
    assert {vm.name for vm in left.vms if vm.cluster_mark == SPEC.name} == set()
    assert {folder.path for folder in left.folders if folder.path} == set()


def codes(run: Callable[[], Report]) -> set[str]:
    """Return the codes of what went wrong in a run; none when all is done."""
    try:
        report = run()
    except VsmlError as error:
        return {error.code}
    assert report.done or report.error is not None
    return {report.error.code} if report.error else set()


def finished(between: Proxy) -> None:
    """Provision once more, see that it is done then, and remove everything."""
    assert codes(lambda: provisioned(between)) == set()
    removed(between)


def each_position(
    between: Proxy, trouble: Trouble, run: Callable[[], T], part: int, parts: int
) -> Iterator[tuple[str, T]]:
    """Run with the trouble at the first call, at the second …, until a run has no such call; the last one is unbroken.

    Yields each call's number and name, and what its run came to. Part 0 of three has the 1st, the 4th and so on.
    """
    number, met = part + 1, True
    while met:
        # Who answers the first question with a page is no vCenter.
        fair = proxy.dropped if number == 1 and trouble is proxy.page else trouble
        with between.breaking("*", fair, nth=number) as rule:
            outcome = run()
            met = rule.done == 1
            call = between.calls[number - 1] if met else "none"
        yield f"{number} {call}", outcome
        number += parts
    assert number > 2 * parts, "no run had a call to break"
