"""Hosts as they are run: emptied by DRS, by shutting down, or left alone, on a lab that does as vSphere documents."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.integration import labs
from vsphere_ml.config.load import load_text
from vsphere_ml.core.errors import NotPossible
from vsphere_ml.core.model.spec import Evacuation
from vsphere_ml.lab.server import topology_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from vsphere_ml.core.model.spec import ClusterSpec
    from vsphere_ml.flows.cluster.report import Report
    from vsphere_ml.lab.state import Lab

pytestmark = pytest.mark.lab

OTHERS = """
[[vm]]
name = "web-[1-2]"
host = "esx-0{number}.lab.test"
cpus = 1
memory_gib = 1
disk_gib = 1
datastore = "vsan"
hardware_version = 20
power = "on"
"""
AUTOMATED = 'drs = "fullyAutomated"'


@pytest.fixture
def lab(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Lab]:
    """Run hosts that are not ready, with two VMs of others on each, under the cluster's DRS that a test names."""
    text = topology_file("unready-8.0u3").read_text().replace('drs = "partiallyAutomated"', request.param)
    assert request.param in text
    topology = tmp_path / "hosts.toml"
    topology.write_text(text + OTHERS.format(number=1))
    with labs.running(tmp_path / "state", str(topology)) as started:
        yield started


def provision(lab: Lab, evacuate: Evacuation) -> Report:
    text = labs.cluster_file(
        "emptied",
        cluster="ampere",
        gpu='{ profile = "A100-40C" }',
        nic='{ kind = "sriov", port_group = "roce" }',
        nodes=2,
        more=f'[host_config]\nkinds = ["graphics", "sriov"]\nevacuate = "{evacuate}"',
    )
    vcenter = labs.gateway(lab)
    try:
        return labs.brought(spread(load_text(text)), lab, vcenter)
    finally:
        vcenter.close()


def spread(spec: ClusterSpec) -> ClusterSpec:
    """Pin a node to each host, so that the one with VMs of others is needed."""
    hosts = ("esx-01.lab.test", "esx-02.lab.test")
    return replace(spec, nodes=tuple(replace(node, host=host) for node, host in zip(spec.nodes, hosts, strict=True)))


@pytest.mark.parametrize("lab", [AUTOMATED], indirect=True)
def test_drs_takes_others_vms_away_and_the_host_is_made_ready(lab: Lab) -> None:
    report = provision(lab, Evacuation.DRS)
    assert report.done, report.errors
    assert {vm for host in report.hosts for vm in host.plan.migrated} == {"web-1", "web-2"}


@pytest.mark.parametrize(
    ("lab", "evacuate"),
    [(AUTOMATED, Evacuation.REFUSE), ('drs = "partiallyAutomated"', Evacuation.DRS)],
    indirect=["lab"],
)
def test_a_host_that_is_not_emptied_is_left_alone(lab: Lab, evacuate: Evacuation) -> None:
    with pytest.raises(NotPossible) as refused:
        provision(lab, evacuate)
    assert refused.value.code == "placement.infeasible"
    assert any("web-1, web-2" in line for line in refused.value.details)
