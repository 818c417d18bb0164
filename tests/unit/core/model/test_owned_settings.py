"""Advanced settings that left the file are taken away; those of others stay."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.fakes.pictures import quad_8u3
from tests.fakes.requirements import cluster, nodes
from tests.unit.core.applied import applied
from tests.unit.core.sites import changed, only, planned, provisioned, seen
from vsphere_ml.core.catalog.reserved_keys import refusal
from vsphere_ml.core.model.owned_settings import RECORD_KEY, format_record, left_behind
from vsphere_ml.core.plan.changes import SetSettings

if TYPE_CHECKING:
    from tests.golden import Golden

TWO = {"sched.swap.vmxSwapEnabled": "FALSE", "isolation.tools.copy disable": "TRUE"}


def test_a_record_is_read_as_it_was_written_whatever_the_keys() -> None:
    there = {**TWO, RECORD_KEY: format_record(TWO)}
    assert set(left_behind(there, ())) == set(TWO)
    assert left_behind(there, [key.upper() for key in TWO]) == ()
    assert left_behind(TWO, ()) == ()


def test_a_key_that_left_the_file_is_taken_away_and_nothing_else(golden: Golden) -> None:
    site = provisioned(cluster(nodes(1, extra_config=TWO)), quad_8u3(taken=False))
    site = changed(site, extra_config={**seen(site).extra_config, "x": "1"})
    assert not planned(cluster(nodes(1, extra_config=TWO)), site)
    one = cluster(nodes(1, extra_config={"sched.swap.vmxSwapEnabled": "FALSE"}))
    plan = planned(one, site)
    golden(only(plan, SetSettings).drift)
    done = applied(plan.changes, site)
    assert not planned(one, done)
    keys = seen(applied(planned(cluster(1), done).changes, done)).extra_config
    assert not set(TWO) & set(keys)
    assert keys["x"] == "1"


def test_a_vm_of_before_the_record_is_neither_stopped_nor_changed_for_it() -> None:
    site = provisioned(cluster(nodes(1, extra_config=TWO)), quad_8u3(taken=False))
    old = {key: value for key, value in seen(site).extra_config.items() if key != RECORD_KEY}
    site = changed(site, extra_config=old)
    assert not planned(cluster(nodes(1, extra_config=TWO)), site)
    grown = planned(cluster(nodes(1, extra_config={**TWO, "more": "1"})), site)
    assert seen(applied(grown.changes, site)).extra_config[RECORD_KEY] == format_record({**TWO, "more": "1"})


def test_a_file_cannot_set_what_vsml_knows_its_vms_by() -> None:
    for key in (RECORD_KEY, "guestinfo.vsml.cluster", "GuestInfo.VSML.node"):
        assert refusal(key) is not None
