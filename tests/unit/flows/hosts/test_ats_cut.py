"""A run of enable-ats that is killed anywhere is finished by the next, and nothing is left behind."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from tests.fakes.site import Cut
from tests.unit.flows.hosts_rig import Rig, of_versions
from vsphere_ml.core.hosts.host_changes import Reboot
from vsphere_ml.core.model.esxi_state import HostConnection

if TYPE_CHECKING:
    from vsphere_ml.core.hosts.host_changes import HostChange

VERSIONS = (("7.0.2", "17630552", "intel"), ("8.0.3", "24022510", "intel"))


def rig() -> Rig:
    made = of_versions(*VERSIONS)
    made.esx(1).graphics = ["shared", "shared"]
    return made


def steps(*, revert: bool) -> int:
    made = rig()
    made.run()
    before = made.hosts.steps
    if revert:
        made.run(revert=True)
        return made.hosts.steps - before
    return before


@pytest.mark.parametrize("after", range(1, steps(revert=False) + 1))
def test_the_next_run_finishes(after: int) -> None:
    made = rig()
    made.hosts.cut_after = after
    with suppress(Cut):
        made.run()
    made.hosts.mend()
    assert made.run().error is None
    assert made.whole
    assert made.running() == {"node-1", "node-2"}
    made.run(revert=True)  # what was there before the cut run is still known
    assert [each.kernel for each in made.hosts.there.values()] == [["FALSE", "FALSE"], ["TRUE", "TRUE"]]
    assert made.esx(1).graphics == ["shared", "shared"]


def test_a_host_that_still_boots_is_waited_for() -> None:
    made = rig()
    made.hosts.cut_after = next(at for at in range(1, 99) if _down_after(at))
    with suppress(Cut):
        made.run()
    made.hosts.mend(booted=False)
    assert made.run().error is None
    assert made.done(made.esx(0).name)[-4:] == ["AwaitHost", "ExitMaintenance", "PowerOnAgain", "WriteRecord"]
    assert made.whole


def _down_after(steps: int) -> bool:
    made = rig()
    made.hosts.cut_after = steps
    with suppress(Cut):
        made.run()
    return made.esx(0).connection is HostConnection.NOT_RESPONDING


def test_a_host_that_still_boots_keeps_its_record_until_all_is_seen_to_be_back() -> None:
    made = rig()
    made.run()
    made.hosts.before = lambda change: _cut_in(made, change)
    with suppress(Cut):
        made.run(revert=True)
    made.hosts.before = None
    made.hosts.mend(booted=False)
    assert made.esx(0).connection is HostConnection.NOT_RESPONDING
    assert made.run(revert=True).error is None
    assert made.esx(0).kernel == ["FALSE", "FALSE"]
    assert not any(machine.record for machine in made.hosts.there.values())


def _cut_in(made: Rig, change: HostChange) -> None:
    """Kill the run as soon as the host is down."""
    if isinstance(change, Reboot):
        made.hosts.steps, made.hosts.cut_after = 0, 1


@pytest.mark.parametrize("after", range(1, steps(revert=True) + 1))
def test_the_next_revert_finishes(after: int) -> None:
    made = rig()
    made.run()
    made.hosts.steps, made.hosts.cut_after = 0, after
    with suppress(Cut):
        made.run(revert=True)
    made.hosts.mend()
    made.run(revert=True)
    assert made.esx(0).kernel == ["FALSE", "FALSE"]
    assert made.esx(1).graphics == ["shared", "shared"]
    assert not any(machine.maintenance or machine.record for machine in made.hosts.there.values())
    assert made.running() == {"node-1", "node-2"}
    assert made.hosts.resume == {}
