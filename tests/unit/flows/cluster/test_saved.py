"""A saved plan does exactly what it says, or nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.pictures import quad_8u3, seed_7u2
from tests.fakes.requirements import cluster, node, seed_cluster
from tests.fakes.site import FakeVCenter
from tests.unit.flows.acting import Told, provision
from vsphere_ml.core.errors import ConfigError, NotPossible
from vsphere_ml.core.model.spec import ClusterSpec, SecretSource, VCenterSpec
from vsphere_ml.flows.cluster.proposal import GuestConfig, propose
from vsphere_ml.flows.cluster.saved import SavedPlan, load, save
from vsphere_ml.flows.run_context import RunContext

if TYPE_CHECKING:
    from tests.golden import Golden

SCHEMA = json.loads((Path(__file__).parents[4] / "docs/reference/plan.schema.json").read_text())


def text_of(spec: ClusterSpec, site: FakeVCenter, given: GuestConfig | None = None) -> str:
    proposal = propose(RunContext(spec, site, Told(), site.clock), given=given or GuestConfig(first_boots={}))
    return save(proposal, spec)


def saved_from(spec: ClusterSpec, site: FakeVCenter) -> SavedPlan:
    return load(text_of(spec, site), "night.plan")


def test_a_saved_plan_is_carried_out() -> None:
    site = FakeVCenter(quad_8u3())
    saved = saved_from(cluster(3), site)
    report = provision(cluster(3), site, saved=saved)
    assert report.done
    assert report.applied


def test_the_same_plan_is_saved_word_for_word() -> None:
    assert text_of(cluster(3), FakeVCenter(quad_8u3())) == text_of(cluster(3), FakeVCenter(quad_8u3()))


def refusal(spec: ClusterSpec, site: FakeVCenter, saved: SavedPlan) -> NotPossible:
    with pytest.raises(NotPossible) as caught:
        provision(spec, site, saved=saved)
    assert site.holds == 0
    return caught.value


def test_a_site_that_moved_on_refuses_the_plan(golden: Golden) -> None:
    site = FakeVCenter(quad_8u3())
    saved = saved_from(cluster(2), site)
    hosts = site.inventory.hosts
    site.inventory = replace(site.inventory, hosts=(replace(hosts[0], maintenance=True), *hosts[1:]))
    error = refusal(cluster(2), site, saved)
    assert error.code == "plan.stale"
    golden(error)
    assert site.started == 0


def test_a_plan_that_was_carried_out_is_refused_the_second_time(golden: Golden) -> None:
    site = FakeVCenter(quad_8u3())
    saved = saved_from(cluster(2), site)
    provision(cluster(2), site, saved=saved)
    with pytest.raises(NotPossible) as caught:
        provision(cluster(2), site, saved=saved)
    assert caught.value.code == "plan.stale"
    golden(caught.value)


def test_a_changed_spec_refuses_the_plan(golden: Golden) -> None:
    site = FakeVCenter(quad_8u3())
    saved = saved_from(cluster(2), site)
    error = refusal(cluster((node("node-1", cpus=8), node("node-2"))), site, saved)
    assert (error.code, error.target) == ("plan.stale", "night.plan")
    golden(error)


@pytest.mark.parametrize(("saved", "asked"), [(2, 1), (1, 2)])
def test_changes_that_only_one_of_the_plans_has_are_named_in_words(saved: int, asked: int) -> None:
    site = FakeVCenter(quad_8u3())
    details = refusal(cluster(asked), site, saved_from(cluster(saved), site)).details
    assert "clone of node-2" in {each.partition(": ")[2] for each in details}


def test_another_site_or_cluster_refuses_the_plan(golden: Golden) -> None:
    saved = saved_from(cluster(2), FakeVCenter(quad_8u3()))
    other = refusal(seed_cluster(2), FakeVCenter(seed_7u2()), saved)
    golden(other.details)
    named = refusal(cluster(2, name="other"), FakeVCenter(quad_8u3()), saved)
    golden(named.details)


def test_an_edited_plan_asks_for_nothing_of_its_own(golden: Golden) -> None:
    site = FakeVCenter(quad_8u3())
    document = json.loads(text_of(cluster(2), site))
    document["stages"][-1]["changes"].append({"change": "DeleteVm", "vm": "etl-7"})
    error = refusal(cluster(2), site, load(json.dumps(document), "night.plan"))
    assert (error.code, error.target) == ("plan.stale", "night.plan")
    golden(error)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"schema": "vsml/1"}',
        '{"schema": "vsml.plan/9"}',
        '{"schema": "vsml.plan/4", "cluster": "train"}',
    ],
)
def test_a_file_that_is_no_plan_is_refused_in_words(text: str, golden: Golden) -> None:
    with pytest.raises(ConfigError) as caught:
        load(text, "night.plan")
    assert caught.value.code == "plan.unreadable"
    golden(caught.value)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda each: st.lists(each, max_size=3)))
def test_wrong_fields_are_refused_and_never_crash(value: object) -> None:
    document = json.loads(text_of(cluster(1), FakeVCenter(quad_8u3())))
    for key in ("schema", "stages", "site"):
        try:
            load(json.dumps({**document, key: value}), "night.plan")
        except ConfigError as error:
            assert error.code == "plan.unreadable"  # noqa: PT017 - some values are right


def test_no_secret_and_no_address_is_in_a_plan() -> None:
    vcenter = VCenterSpec(server="vc.example.com", username="admin@vsphere.local", password=SecretSource(env="SECRET"))
    text = text_of(cluster(2, vcenter=vcenter), FakeVCenter(quad_8u3()))
    assert not any(word in text for word in ("vc.example.com", "admin@vsphere.local", "SECRET"))


@pytest.mark.parametrize(
    ("spec", "picture"),
    [(cluster(3), quad_8u3()), (cluster(2), quad_8u3(template_version=20)), (seed_cluster(2), seed_7u2())],
    ids=["8.0 U3", "8.0 U3, one step", "7.0 U2"],
)
def test_a_saved_plan_is_as_the_schema_says(spec: ClusterSpec, picture: object) -> None:
    document = json.loads(text_of(spec, FakeVCenter(picture)))  # type: ignore[arg-type]
    jsonschema.validate(document, SCHEMA)


def test_the_schema_finds_departures() -> None:
    document = json.loads(text_of(cluster(1), FakeVCenter(quad_8u3())))
    document["stages"][0]["changes"][0]["change"] = "Explode"
    del document["site"]
    found = jsonschema.Draft202012Validator(SCHEMA).iter_errors(document)
    assert sorted(list(each.absolute_path) for each in found) == [[], ["stages", 0, "changes", 0]]
