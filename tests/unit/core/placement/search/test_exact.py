"""Clusters that fit are placed and others are refused: hard sites with known answers, and any site by brute force."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.counted import checked, counted
from tests.fakes.pictures import quad_8u3
from tests.fakes.requirements import cluster, node
from tests.unit.core.brute import MOST, possible
from tests.unit.core.hard_sites import Case, cases
from vsphere_ml.core.errors import NotPossible
from vsphere_ml.core.model.device_kinds import NicKind
from vsphere_ml.core.model.spec import ClusterSpec, GpuRequest, NicRequest, Spread
from vsphere_ml.core.placement.search import exact
from vsphere_ml.core.placement.search.backtracking import SearchResult
from vsphere_ml.core.placement.search.exact import Search
from vsphere_ml.core.placement.solve import solve
from vsphere_ml.core.units import Bytes, gib

if TYPE_CHECKING:
    from tests.golden import Golden
    from vsphere_ml.core.model.inventory import Host, Inventory

CASES = cases()


def by_name(case: Case) -> str:
    return case.name


@pytest.mark.parametrize("case", CASES, ids=by_name)
def test_a_hard_site_has_the_answer_that_is_known(case: Case) -> None:
    assert refusal(case.spec, case.site) is None if case.fits else refusal(case.spec, case.site) is not None


@pytest.mark.parametrize("case", [each for each in CASES if each.brute], ids=by_name)
def test_the_known_answers_are_right(case: Case) -> None:
    assert possible(case.spec.nodes, case.site.hosts) is case.fits


@pytest.mark.parametrize("case", [each for each in CASES if each.fits], ids=by_name)
def test_the_sites_said_to_strand_a_greedy_walk_do(case: Case, monkeypatch: pytest.MonkeyPatch, golden: Golden) -> None:
    monkeypatch.setattr(Search, "run", lambda _: SearchResult.GAVE_UP)
    stranded = refusal(case.spec, case.site)
    assert (stranded is not None) is case.strands
    if stranded is not None:
        golden(stranded.details[-1])


@pytest.mark.parametrize("case", [each for each in CASES if not each.fits], ids=by_name)
def test_a_refusal_names_what_is_short_and_where(case: Case) -> None:
    possible = refusal(case.spec, case.site)
    assert possible is not None
    assert case.says
    assert not any(line.startswith("not proven") for line in possible.details)
    for words in case.says:
        assert any(words in line for line in possible.details), possible.details


@st.composite
def hosts(draw: st.DrawFn, number: int) -> Host:
    host = quad_8u3(hosts=number, taken=False).hosts[-1]
    gpus = draw(st.lists(st.sampled_from(host.gpus), min_size=1, max_size=3, unique=True))
    nics = draw(st.lists(st.sampled_from(host.nics), min_size=1, max_size=2, unique=True))
    mode = draw(st.sampled_from(["sameSize", "sameSize", "mixedSize"]))
    return replace(
        host,
        gpus=tuple(replace(gpu, vgpu_mode=mode) for gpu in sorted(gpus, key=lambda gpu: gpu.address)),
        nics=tuple(replace(nic, vfs=draw(st.integers(1, 2))) for nic in sorted(nics, key=lambda nic: nic.address)),
        groups=(),
        memory=draw(st.sampled_from([gib(96), gib(160), gib(512)])),
        numa=tuple(replace(each, memory=Bytes(host.memory // 2)) for each in host.numa),
    )


@st.composite
def wanted(draw: st.DrawFn) -> ClusterSpec:
    nodes = tuple(
        node(
            f"node-{number}",
            cpus=draw(st.sampled_from([4, 14, 20])),
            memory=draw(st.sampled_from([gib(32), gib(64), gib(96)])),
            gpu=GpuRequest(profile=draw(st.sampled_from(list(MOST))), count=draw(st.sampled_from([1, 1, 2]))),
            nic=NicRequest(kind=draw(st.sampled_from([NicKind.SRIOV, NicKind.NONE])), port_group="roce"),
            host=draw(st.sampled_from([None, None, None, "esx-01.lab.test"])),
        )
        for number in range(1, draw(st.integers(1, 4)) + 1)
    )
    return cluster(nodes, spread=draw(st.sampled_from(Spread)))


@counted
@settings(deadline=None, max_examples=200)
@given(wanted(), st.tuples(hosts(1), hosts(2)), st.sampled_from([0, exact.STEPS]))
def test_a_cluster_is_placed_exactly_when_there_is_any_placement(
    spec: ClusterSpec, there: tuple[Host, Host], steps: int
) -> None:
    """Also where the walk gives up at once, and loads of hosts decide."""
    site = replace(quad_8u3(hosts=2, taken=False), hosts=there)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact, "STEPS", steps)
        not_possible = refusal(spec, site)
    if not_possible is not None:
        checked()  # that a refusal is right is what the walk alone does not show
    assert (not_possible is None) == possible(spec.nodes, site.hosts)
    assert not_possible is None or not not_possible.details[-1].startswith("not proven")


@pytest.mark.parametrize("case", [each for each in CASES if each.fits], ids=by_name)
def test_loads_of_hosts_find_placements_where_backtracking_gives_up(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exact, "STEPS", 0)
    assert refusal(case.spec, case.site) is None


def refusal(spec: ClusterSpec, site: Inventory) -> NotPossible | None:
    try:
        placement = solve(spec, site)
    except NotPossible as error:
        possible = error
    else:
        assert [node_placement.node for node_placement in placement.placements] == list(spec.nodes)
        return None
    assert possible.code == "placement.infeasible"
    return possible
