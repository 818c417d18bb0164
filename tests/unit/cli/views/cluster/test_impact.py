"""What stands before the question: every VM that stops or goes, every host that reboots, and for how long at most."""

from __future__ import annotations

import re

from vsphere_ml.cli.views.cluster.impact import impact_of_plan, impact_on_hosts
from vsphere_ml.core.hosts.host_changes import Reboot
from vsphere_ml.core.hosts.host_plan import HostPlan
from vsphere_ml.core.model.host_settings import HostFacts
from vsphere_ml.core.model.inventory import HostRef
from vsphere_ml.core.plan.changes import DeleteVm, PowerOff, PowerOn
from vsphere_ml.core.plan.plan import Plan, Stage

STOPS, FOREIGN, DELETES, REBOOTS = "on again", "of others", "deletes", "reboots"


def host(name: str, *, stopped: tuple[str, ...] = (), foreign: tuple[str, ...] = ()) -> HostPlan:
    reboot = Reboot(host=HostRef(name), host_name=name, boot_time="")
    facts = HostFacts(host=HostRef(name), name=name, facts=())
    return HostPlan(facts=facts, steps=(reboot,), stopped=stopped, foreign=foreign)


def parts(stated: str) -> dict[str, str]:
    """Return what is stated by its kind."""
    return {kind: part for part in stated.split("; ") for kind in (STOPS, FOREIGN, DELETES, REBOOTS) if kind in part}


def test_a_vm_that_is_deleted_is_not_also_counted_as_stopped() -> None:
    changes = (PowerOff(vm="a"), PowerOff(vm="b"), DeleteVm(vm="b"), PowerOn(vm="a"))
    stated = parts(impact_of_plan(Plan(stages=(Stage(title="delete", changes=changes),))))
    assert stated.keys() == {STOPS, DELETES}
    assert "1 VM" in stated[STOPS]
    assert stated[STOPS].endswith(": a")
    assert stated[DELETES].endswith(": b")


def test_nothing_is_stated_where_nothing_stops() -> None:
    assert not impact_of_plan(Plan(stages=(Stage(title="power on", changes=(PowerOn(vm="a"),)),)))


def test_hosts_are_counted_with_the_vms_on_them_and_the_time_for_all() -> None:
    hosts = [host("esx-1", stopped=("a",), foreign=("etl-7",)), host("esx-2", stopped=("b",)), host("esx-3")]
    stated = parts(impact_on_hosts(hosts, 1, 600))
    assert stated.keys() == {STOPS, FOREIGN, REBOOTS}
    assert stated[STOPS].endswith(": a, b")
    assert stated[FOREIGN].endswith(": etl-7")
    assert re.findall(r"\d+", stated[REBOOTS])[:2] == ["3", "30"]
    assert re.findall(r"\d+", parts(impact_on_hosts(hosts, 2, 600))[REBOOTS])[:3] == ["3", "2", "20"]
