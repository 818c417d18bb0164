"""What stands before the question: every VM that stops or goes, every host that reboots, and for how long at most."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from vsphere_ml.cli.views.cluster.impact import downtime, impact_of_plan, impact_on_hosts
from vsphere_ml.core.hosts.host_changes import EnterMaintenance, ExitMaintenance, PowerOnAgain, Reboot, ShutDown
from vsphere_ml.core.hosts.host_plan import HostPlan
from vsphere_ml.core.model.host_settings import HostFacts
from vsphere_ml.core.model.inventory import HostRef, VmRef
from vsphere_ml.core.plan.changes import DeleteVm, PowerOff, PowerOn, UpgradeHardware
from vsphere_ml.core.plan.plan import Plan, Stage
from vsphere_ml.flows.hosts.host_apply import StepTimeouts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.golden import Golden
    from vsphere_ml.core.hosts.host_changes import HostChange
    from vsphere_ml.core.plan.changes import Change

STOPS, FOREIGN, DELETES, REBOOTS = "on again", "of others", "deletes", "reboots"


def host(name: str, *, stopped: tuple[str, ...] = (), foreign: tuple[str, ...] = ()) -> HostPlan:
    facts = HostFacts(host=HostRef(name), name=name, facts=())
    return HostPlan(facts=facts, steps=tuple(steps(name, *stopped, *foreign)), stopped=stopped, foreign=foreign)


def steps(name: str, *vms: str) -> Iterator[HostChange]:
    ref = HostRef(name)
    yield from (ShutDown(host=ref, host_name=name, vm=VmRef(each), vm_name=each) for each in vms)
    yield EnterMaintenance(host=ref, host_name=name)
    yield Reboot(host=ref, host_name=name, boot_time="")
    yield ExitMaintenance(host=ref, host_name=name)
    yield from (PowerOnAgain(host=ref, host_name=name, vm=VmRef(each), vm_name=each) for each in vms)


def restart(*vms: str) -> Plan:
    off = tuple(PowerOff(vm=each) for each in vms)
    upgrades = tuple(UpgradeHardware(vm=each, version=20, was=19) for each in vms)
    on = tuple(PowerOn(vm=each) for each in vms)
    stages: dict[str, tuple[Change, ...]] = {"power off": off, "hardware version": upgrades, "power on": on}
    return Plan(stages=tuple(Stage(title=title, changes=changes) for title, changes in stages.items()))


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
    quick = StepTimeouts(reboot_s=600)
    stated = parts(impact_on_hosts(hosts, 1, quick))
    assert stated.keys() == {STOPS, FOREIGN, REBOOTS}
    assert stated[STOPS].endswith(": a, b")
    assert f"{quick.seconds_off(hosts[0]) / 60:.0f} min" in stated[STOPS], "the longest time"
    assert stated[FOREIGN].endswith(": etl-7")
    assert re.findall(r"\d+", stated[REBOOTS])[:2] == ["3", "30"]
    assert re.findall(r"\d+", parts(impact_on_hosts(hosts, 2, quick))[REBOOTS])[:3] == ["3", "2", "20"]


def test_for_vms_too_it_is_said_how_long_they_are_off_at_most(golden: Golden) -> None:
    hosts = (host("esx-1", stopped=("a", "b"), foreign=("etl-7",)), host("esx-2"))
    both = Plan(stages=restart("b", "c").stages, hosts=hosts)
    golden(
        {
            "one VM": impact_of_plan(restart("a")),
            "two VMs": impact_of_plan(restart("a", "b")),
            "one after another": impact_of_plan(restart("a", "b"), 1),
            "with hosts": impact_of_plan(both),
            "hosts alone": impact_on_hosts(hosts, 1),
        }
    )


def test_the_plan_has_the_same_times_as_data() -> None:
    on_host = host("esx-1", stopped=("a", "b"), foreign=("etl-7",))
    ready = StepTimeouts().seconds_off(on_host)
    assert ready == 3 * 300 + 600 + 1800 + 600 + 3 * 120
    found = {
        each["vm"]: each["off_seconds"] for each in downtime(Plan(stages=restart("b", "c").stages, hosts=(on_host,)))
    }
    assert found == {"a": ready, "b": ready + 1800, "etl-7": ready, "c": 1800}
    assert downtime(Plan(stages=(Stage(title="power on", changes=(PowerOn(vm="a"),)),))) == []
