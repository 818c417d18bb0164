"""What is run against a vCenter whose answers break: every command that reads, and a cluster's way up and down.

Each call of a run is broken: the first of a kind with every trouble, each that follows with one of them. Which one goes
round with VSML_FAULTS_OFFSET, the day when it is not set; VSML_FAULTS_EACH=1 tries every call with every trouble.
"""

from __future__ import annotations

import os
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from pyVim.task import WaitForTask
from pyVmomi import vmodl

from tests.faults.late import late
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
from vsphere_ml.flows.run_context import RunContext
from vsphere_ml.vsphere.esxi.esx_hosts import EsxHosts
from vsphere_ml.vsphere.gateway import Gateway
from vsphere_ml.vsphere.inventory.collect import managed_object
from vsphere_ml.vsphere.privileges import missing_privileges

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from tests.integration.proxy import Proxy
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
LATE = {"late": late}
ALL = TROUBLES | LATE
OFFSET = "VSML_FAULTS_OFFSET"
EACH = "VSML_FAULTS_EACH"
TIMEOUT_S = 60.0
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
    refs = [host.ref for host in Gateway(session).read_site(Scope(direct_path=True)).hosts]
    return EsxHosts(session).see(refs)


def look_at(scope: Scope) -> Callable[[Session], Any]:
    return lambda session: Gateway(session).read_site(scope)


def read_plan(session: Session) -> Any:
    return plan(RunContext(SPEC, Gateway(session), lambda _: None, SystemClock())).plan


def read_status(session: Session) -> Any:
    return status(RunContext(SPEC, Gateway(session), lambda _: None, SystemClock()))


def read_vgpu_managers(session: Session) -> Any:
    gateway = Gateway(session)
    return gateway.vgpu_managers([host.ref for host in gateway.read_site(Scope()).hosts])


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


def answer(between: Proxy, read: Callable[[Session], Any]) -> Any:
    session = between.sign_in(timeout_s=TIMEOUT_S)
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
        return provision(RunContext(SPEC, gateway, lambda _: None, SystemClock()), approve=lambda _: True)
    finally:
        gateway.close()


def destroyed(between: Proxy) -> Report:
    gateway = between.gateway(timeout_s=TIMEOUT_S)
    try:
        return destroy(RunContext(SPEC, gateway, lambda _: None, SystemClock()), approve=lambda _: True)
    finally:
        gateway.close()


def removed(between: Proxy) -> None:
    """Destroy the cluster, and see that nothing of it is left."""
    gateway = between.gateway()
    try:
        assert destroy(RunContext(SPEC, gateway, lambda _: None, SystemClock()), approve=lambda _: True).done
        left = gateway.read_site(Scope())
    finally:
        gateway.close()
    assert {vm.name for vm in left.vms if vm.cluster_mark == SPEC.name} == set()
    assert {folder.path for folder in left.folders if folder.path} == set()


def remove_leftovers(between: Proxy) -> None:
    """Remove nodes and folders that a test has left which was ended in its midst, locks included."""
    with between.unbroken():
        session = between.sign_in()
        try:
            site = Gateway(session).read_site(Scope())
            names = {node.name for node in LARGER.nodes}
            for vm in (managed_object(session, "vim.VirtualMachine", vm.ref) for vm in site.vms if vm.name in names):
                if vm.runtime.powerState == "poweredOn":
                    WaitForTask(vm.PowerOffVM_Task())
                WaitForTask(vm.Destroy_Task())
            for folder in sorted((each for each in site.folders if each.path), key=lambda each: each.path.count("/")):
                with suppress(vmodl.fault.ManagedObjectNotFound):  # it went with the one above it
                    WaitForTask(managed_object(session, "vim.Folder", folder.ref).Destroy_Task())
        finally:
            session.close()


def forget_attributes(between: Proxy) -> None:
    """Remove the custom attributes, as in a vCenter that vsml has never been used with."""
    session = between.sign_in()
    try:
        manager = session.content.customFieldsManager
        for each in manager.field or ():
            manager.RemoveCustomFieldDef(each.key)
    finally:
        session.close()


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


@dataclass(frozen=True, slots=True)
class Position:
    """One call of a run: the n-th of its kind."""

    kind: str
    nth: int = 1

    @property
    def method(self) -> str:
        return self.kind.split()[0]

    def __str__(self) -> str:
        return f"{self.nth} {self.kind}"


def count_kinds(between: Proxy, run: Callable[[], Any]) -> Counter[str]:
    """Return how often an unbroken run makes calls of each kind."""
    with between.listening():
        run()
        return Counter(between.kinds)


def positions(counts: Counter[str], fault: str, known: Collection[str] = ()) -> list[Position]:
    """Return which calls of a run are tried with a trouble; `known` are kinds whose first is tried elsewhere."""
    first = [Position(kind) for kind in counts if kind not in known]
    others = [Position(kind, nth) for kind in counts for nth in range(1, counts[kind] + 1)]
    return [*first, *share([each for each in others if each not in first], fault)]


def share(places: Sequence[T], fault: str) -> list[T]:
    """Return which of these are tried with this trouble: each has its turn with one."""
    if os.environ.get(EACH):
        return [*places]
    turn = [*ALL].index(fault) + int(os.environ.get(OFFSET, "0"))
    return [place for number, place in enumerate(places) if (number + turn) % len(ALL) == 0]


def each_position(
    between: Proxy, fault: str, run: Callable[[], T], places: Sequence[Position]
) -> Iterator[tuple[Position, T]]:
    """Run with the trouble at each of these calls in turn; yields the call and what its run came to.

    A call that is not its kind's first may be missing from a run: how often a task is asked for differs.
    """
    for place in places:
        # Who answers the first question with a page is no vCenter.
        asks_who = place.method == proxy.VERSIONS and fault == "a page"
        with between.breaking(place.kind, proxy.dropped if asks_who else ALL[fault], nth=place.nth) as rule:
            outcome = run()
        assert rule.done or place.nth > 1, place
        yield place, outcome
