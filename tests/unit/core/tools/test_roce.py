"""The NIC drivers' options: one string, of which only what is asked for changes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.fakes.pictures import quad_8u3
from tests.fakes.requirements import cluster, nodes
from tests.unit.core.sites import each_host, planned, refused
from vsphere_ml.core.model.device_kinds import NicKind
from vsphere_ml.core.model.spec import NicRequest, RoceSpec
from vsphere_ml.core.tools import roce

if TYPE_CHECKING:
    from tests.golden import Golden

LOSSLESS = RoceSpec(pfc_priority=3, dscp=26, ecn=True)


def test_what_is_asked_for_is_what_the_vendors_write() -> None:
    assert roce.wanted_parameters(LOSSLESS) == {
        "nmlx5_core": {"pfctx": "0x08", "pfcrx": "0x08", "trust_state": "2", "ecn": "1"},
        "nmlx5_rdma": {"dscp_force": "26"},
    }
    assert roce.wanted_parameters(RoceSpec()) == {}
    assert roce.wanted_parameters(RoceSpec(ecn=False)) == {"nmlx5_core": {"ecn": "0"}}


@pytest.mark.parametrize(
    ("options", "result"),
    [
        ("", "pfctx=0x08 pfcrx=0x08"),
        ("max_vfs=8,8", "max_vfs=8,8 pfctx=0x08 pfcrx=0x08"),  # virtual functions stay
        ("pfctx=0x10 max_vfs=8,8 pfcrx=8", "max_vfs=8,8 pfcrx=8 pfctx=0x08"),
        ("pfctx=8 pfcrx=0x8 drss=4", "pfctx=8 pfcrx=0x8 drss=4"),  # as wanted, in another notation
    ],
)
def test_a_string_keeps_whatever_nobody_asked_about(options: str, result: str) -> None:
    keys = {"pfctx": "0x08", "pfcrx": "0x08"}
    assert roce.merge_options(options, keys) == result
    assert list(roce.differing_options(result, keys)) == []
    assert roce.merge_options(result, keys) == result


def test_what_is_off_by_default_need_not_be_written(golden: Golden) -> None:
    assert list(roce.differing_options("", {"ecn": "0"})) == []
    golden(list(roce.differing_options("ecn=1", {"ecn": "0"})))


def test_hosts_that_lack_it_are_a_finding_with_the_whole_string_to_type(golden: Golden) -> None:
    site = each_host(
        quad_8u3(hosts=1, taken=False), module_options=(("nmlx5_core", "max_vfs=8,8 ecn=1"), ("nmlx5_rdma", ""))
    )
    (finding,) = planned(cluster(1, roce=LOSSLESS), site).diagnostics
    assert (finding.code, finding.target) == ("host.roce", "esx-01.lab.test")
    golden(finding)


def test_a_driver_that_is_not_there_or_lacks_nothing_is_not_in_what_to_type(golden: Golden) -> None:
    site = quad_8u3(hosts=1, taken=False)
    half = (("nmlx5_core", "pfctx=0x08 pfcrx=0x08 trust_state=2 ecn=1"),)
    (finding,) = planned(cluster(1, roce=LOSSLESS), each_host(site, module_options=half)).diagnostics
    golden(finding)
    assert "parameters set" not in finding.hint


def test_hosts_that_have_it_are_none_and_those_that_do_not_tell_are_named(golden: Golden) -> None:
    site = quad_8u3(hosts=1, taken=False)
    ready = (("nmlx5_core", "pfctx=0x08 pfcrx=0x08 trust_state=2 ecn=1"), ("nmlx5_rdma", "dscp_force=26"))
    assert planned(cluster(1, roce=LOSSLESS), each_host(site, module_options=ready)).diagnostics == ()
    assert [each.code for each in planned(cluster(1, roce=LOSSLESS), site).diagnostics] == ["host.roce-unknown"]
    (other,) = planned(cluster(1, roce=LOSSLESS), each_host(site, module_options=())).diagnostics
    golden(other.message)


def test_nothing_is_asked_of_hosts_whose_nic_is_the_guests_own() -> None:
    site = each_host(quad_8u3(hosts=1, taken=False), module_options=(("nmlx5_core", ""), ("nmlx5_rdma", "")))
    ports = tuple(replace(each, passthrough=True, sriov_enabled=False, vfs=0) for each in site.hosts[0].nics)
    specs = nodes(1, nic=NicRequest(kind=NicKind.PASSTHROUGH))
    assert planned(cluster(specs, roce=LOSSLESS), each_host(site, nics=ports)).diagnostics == ()


def test_a_cluster_that_finds_no_place_is_searched_for_and_refused_as_ever() -> None:
    site = each_host(quad_8u3(hosts=2, taken=False), module_options=(("nmlx5_core", "ecn=1"), ("nmlx5_rdma", "")))
    assert refused(cluster(nodes(9, cpus=2), roce=LOSSLESS), site).code == "placement.infeasible"
