"""The distributed switch of a lab: what is too small is reported, or raised on request, and read back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyVmomi import vim

from tests.integration import labs
from vsphere_ml.cli.wiring.site_wiring import SystemClock
from vsphere_ml.config.load import load_text
from vsphere_ml.core.plan.changes import SetSwitchMtu
from vsphere_ml.core.plan.outcome import Done
from vsphere_ml.flows.cluster.plan import plan
from vsphere_ml.flows.cluster.provision import provision
from vsphere_ml.flows.run_context import RunContext
from vsphere_ml.vsphere.inventory.collect import collect_below

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from vsphere_ml.core.model.spec import ClusterSpec
    from vsphere_ml.lab.state import Lab
    from vsphere_ml.vsphere.gateway import Gateway

pytestmark = pytest.mark.lab
FILE = """
[cluster]
name = "jumbo"
[vcenter]
lab = "default"
[location]
datacenter = "lab-dc"
cluster = "gpu"
folder = "jumbo"
hosts = ["esx-03.lab.test", "esx-04.lab.test"]
datastore = "vsan"
[source]
template = "ubuntu-22.04-gpu"
[roce]
mtu = 9000
raise_mtu = {raised}
{more}
{ready}
[[nodes]]
name = "node-[1-2]"
cpus = 4
memory = "32GiB"
gpu = {{ profile = "A100-40C" }}
nic = {{ port_group = "roce" }}
network = {{ port_group = "vm-mgmt" }}
"""

LOSSLESS = "pfc_priority = 3\ndscp = 26\necn = true"


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    with labs.running(tmp_path, "quad-8.0u3") as started:
        set_mtu(started, 1500)
        yield started


def set_mtu(lab: Lab, mtu: int) -> None:
    """Give the lab's switch an MTU, as its administrator would."""
    session = labs.sign_in(lab)
    ((switch, props),) = list(
        collect_below(session, session.content.rootFolder, {vim.DistributedVirtualSwitch: ["config"]})
    )
    spec: Any = vim.dvs.VmwareDistributedVirtualSwitch.ConfigSpec
    switch.ReconfigureDvs_Task(spec=spec(configVersion=props["config"].configVersion, maxMtu=mtu))
    session.close()


def spec(*, raised: bool, more: str = "", kinds: str = "") -> ClusterSpec:
    ready = f"[host_config]\nkinds = {kinds}" if kinds else ""
    return load_text(FILE.format(raised="true" if raised else "false", more=more, ready=ready), "cluster.toml")


def test_a_small_mtu_is_a_finding_until_it_may_be_raised(gateway: Gateway) -> None:
    made = plan(RunContext(spec(raised=False), gateway, lambda _: None, SystemClock()))
    assert [(each.code, each.target) for each in made.plan.diagnostics] == [("network.mtu", "dvs-gpu")]
    assert not any(isinstance(each, SetSwitchMtu) for each in made.plan.changes)


def test_it_is_raised_once_read_back_and_nothing_is_left_to_do(gateway: Gateway) -> None:
    cluster_spec = spec(raised=True)
    report = provision(RunContext(cluster_spec, gateway, lambda _: None, SystemClock()), approve=lambda _: True)
    assert report.done, report.error and report.error.details
    assert isinstance(next(each.change for each in report.outcomes if isinstance(each, Done)), SetSwitchMtu)
    assert report.diagnostics == ()
    again = plan(RunContext(cluster_spec, gateway, lambda _: None, SystemClock()))
    assert not again
    assert [(each.name, each.mtu, each.max_mtu, set(each.uplinks.values())) for each in again.inventory.switches] == [
        ("dvs-gpu", 9000, 9000, {("vmnic4", "vmnic5")})
    ]
    vlans = {each.name: each.vlan for each in again.inventory.networks if each.switch}
    assert vlans == {"roce": 200, "vm-mgmt": 10}


def test_the_hosts_drivers_are_looked_at_when_the_file_asks_for_it(gateway: Gateway) -> None:
    lossless = spec(raised=True, more=LOSSLESS)
    made = plan(RunContext(lossless, gateway, lambda _: None, SystemClock()))
    assert {each.code for each in made.plan.diagnostics} == {"host.roce"}
    assert 'nmlx5_core -p "max_vfs=8,8 pfctx=0x08 pfcrx=0x08 trust_state=2 ecn=1"' in made.plan.diagnostics[0].hint
    assert 'nmlx5_rdma -p "dscp_force=26"' in made.plan.diagnostics[0].hint
    unreachable = plan(RunContext(spec(raised=True), gateway, lambda _: None, SystemClock()))
    assert unreachable.plan.diagnostics == ()
    assert {each.module_options for each in unreachable.inventory.hosts} == {None}


def test_hosts_get_the_drivers_options_and_keep_their_virtual_functions(lab: Lab, gateway: Gateway) -> None:
    cluster_spec = spec(raised=True, more=LOSSLESS, kinds='["roce"]')
    report = labs.brought(cluster_spec, lab, gateway)
    assert report.done, report.error and report.error.details
    seen = plan(RunContext(cluster_spec, gateway, lambda _: None, SystemClock())).inventory
    used = {placement.host for placement in report.placements}
    wanted = (
        ("nmlx5_core", "pfctx=0x08 pfcrx=0x08 trust_state=2 ecn=1 max_vfs=8,8"),
        ("nmlx5_rdma", "dscp_force=26"),
    )
    assert [host.module_options for host in seen.hosts if host.ref in used] == [wanted] * len(used)
    assert {port.vfs for host in seen.hosts for port in host.nics} == {8}
    assert not any(host.maintenance for host in seen.hosts)
    assert not labs.brought(cluster_spec, lab, gateway).applied
