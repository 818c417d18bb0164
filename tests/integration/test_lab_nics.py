"""Every way to give a VM a fast NIC, on a lab: given as the file asks, read back, kept, and refused beyond its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.integration import labs
from vsphere_ml.bench.probe.machines import Uplink, machines
from vsphere_ml.cli.wiring.site_wiring import SystemClock
from vsphere_ml.config.load import load_text
from vsphere_ml.core.errors import NotPossible
from vsphere_ml.core.hosts.host_changes import SetPassthrough
from vsphere_ml.core.hosts.missing_prerequisites import missing_prerequisites
from vsphere_ml.core.model.inventory import EthernetCard, PciFunctionDevice, VgpuDevice
from vsphere_ml.core.ports.vcenter import Scope
from vsphere_ml.flows.cluster.destroy import destroy
from vsphere_ml.flows.cluster.plan import plan
from vsphere_ml.flows.hosts.host_configuration import HostConfiguration
from vsphere_ml.flows.hosts.host_session import HostSession
from vsphere_ml.flows.run_context import RunContext
from vsphere_ml.lab.server import topology_file
from vsphere_ml.vsphere.esxi.esx_hosts import EsxHosts

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from vsphere_ml.core.model.inventory import Inventory, VmDevice
    from vsphere_ml.core.model.spec import ClusterSpec
    from vsphere_ml.flows.cluster.plan import PlacedPlan
    from vsphere_ml.lab.state import Lab
    from vsphere_ml.vsphere.gateway import Gateway

pytestmark = pytest.mark.lab

# The hosts' cluster in the topology, the NIC asked for, and what each VM then has beside its vGPU.
KINDS = {
    "group": ("pairs", '{ kind = "device-group", port_group = "roce" }', ["sriov in a group"]),
    "function": ("pairs", '{ kind = "sriov", port_group = "roce" }', ["sriov"]),
    "port": ("whole", '{ kind = "passthrough" }', ["PCI function"]),
    "paravirtual": ("pvrdma", '{ kind = "pvrdma", port_group = "roce" }', ["pvrdma"]),
    "several": ("hgx-a100", '{ count = 2, port_group = "roce" }', ["sriov", "sriov"]),
    "plain": ("pairs", '{ kind = "none" }', []),
}
UPLINK, OTHER = "0000:3d:00.0", "0000:b5:00.0"  # of the hosts in `pvrdma`, which have SR-IOV off
_SET_UP = 'pvrdma_vmknic = "vmk1"\npvrdma_firewall = true\n'


def topology(folder: Path) -> str:
    """Write the spectrum with one more cluster, whose NIC ports are handed through whole, and PVRDMA not set up."""
    text = topology_file("spectrum-8.0u3").read_text()
    start = text.index("# Hosts whose ConnectX-6 Dx is the uplink")
    model = text[start : text.index("# Two GPUs in MIG mode")]
    entire = (
        model.replace("r750xa-pvrdma", "r750xa-whole")
        .replace("sriov_enabled = false", "passthrough = true")
        .replace(_SET_UP, "")
    )
    bare = model.replace(_SET_UP, "")
    cluster = """
[[cluster]]
name = "whole"
drs = "partiallyAutomated"
hosts = ["whole-[01-02].lab.test"]
model = "r750xa-whole"

"""
    file = folder / "nics.toml"
    file.write_text(text.replace(model, cluster + entire + bare))
    return str(file)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("state")
    with labs.running(folder, topology(folder)) as started:
        yield started


def by_ports(nodes: int) -> ClusterSpec:
    """Return as many nodes, each with a whole port of hosts whose one port of two is the uplink of a switch."""
    text = labs.cluster_file(
        "ports",
        cluster="pvrdma",
        nodes=nodes,
        nic='{ kind = "passthrough", model = "ConnectX-6 Dx" }',
        gpu='{ profile = "A100-40C" }',
        more='[host_config]\nkinds = ["passthrough"]',
    )
    return load_text(text, "cluster.toml")


def spec(name: str, *kinds: str) -> ClusterSpec:
    cluster, nic, _ = KINDS[name]
    asked = ", ".join(f'"{kind}"' for kind in kinds)
    gpu = '{ profile = "A100X-40C", count = 4 }' if cluster == "hgx-a100" else '{ profile = "A100-40C" }'
    more = f"[host_config]\nkinds = [{asked}]"
    return load_text(labs.cluster_file(name, cluster=cluster, nodes=2, nic=nic, gpu=gpu, more=more), "cluster.toml")


def fast(inventory: Inventory, vm: str) -> list[str]:
    """Return the kinds of a VM's devices that are neither vGPUs nor its management NIC."""
    (settings,) = [each.settings for each in inventory.vms if each.name == vm]
    assert settings is not None
    kinds = [kind for device in settings.devices if (kind := _kind(device))]
    assert any(isinstance(each, VgpuDevice) for each in settings.devices)
    assert "vmxnet3" in kinds
    return sorted(kind for kind in kinds if kind != "vmxnet3")


def _kind(device: VmDevice) -> str:
    match device:
        case EthernetCard():
            return f"{device.adapter} in a group" if device.group is not None else device.adapter
        case PciFunctionDevice():
            return "PCI function"
        case _:
            return ""


@pytest.mark.parametrize("name", KINDS)
def test_a_node_gets_the_nic_it_asks_for_and_keeps_it(name: str, lab: Lab, vcenter: Gateway) -> None:
    cluster_spec = spec(name, *(["pvrdma"] if name == "paravirtual" else []))
    try:
        made = labs.brought(cluster_spec, lab, vcenter)
        assert made.done, made.error and made.error.details
        seen = plan(RunContext(cluster_spec, vcenter, lambda _: None, SystemClock())).inventory
        assert [fast(seen, f"{name}-{number}") for number in (1, 2)] == [KINDS[name][2]] * 2
        settings = [vm.settings for vm in seen.vms if vm.settings is not None]
        macs = [card.mac for each in settings for card in each.devices if isinstance(card, EthernetCard)]
        assert len(set(macs)) == len(macs)
        assert not labs.brought(cluster_spec, lab, vcenter).applied
    finally:
        assert destroy(RunContext(cluster_spec, vcenter, lambda _: None, SystemClock()), approve=lambda _: True).done


def planned(spec: ClusterSpec, lab: Lab, vcenter: Gateway) -> PlacedPlan:
    """Return the plan of a run that may make hosts ready."""
    session, clock = labs.sign_in(lab), SystemClock()
    try:
        host_session = HostSession(hosts=EsxHosts(session, pause_s=0.05), notify=lambda _: None)
        return plan(
            RunContext(spec, vcenter, lambda _: None, clock), ready=HostConfiguration(spec, host_session, clock)
        )
    finally:
        session.close()


def test_a_switchs_uplink_is_left_to_it_and_another_port_handed_over_whole(lab: Lab, vcenter: Gateway) -> None:
    made = planned(by_ports(2), lab, vcenter)
    ports = {port.address: port.switch for host in made.inventory.hosts for port in host.nics if "pvrdma" in host.name}
    assert ports == {UPLINK: "dvs-gpu", OTHER: ""}
    assert [placement.nics for placement in made.placement.placements] == [(OTHER,), (OTHER,)]
    assert {each.port for each in made.plan.host_changes if isinstance(each, SetPassthrough)} == {OTHER}


def test_nodes_that_only_uplinks_are_left_for_are_refused_with_that(lab: Lab, vcenter: Gateway) -> None:
    with pytest.raises(NotPossible) as refusal:
        planned(by_ports(3), lab, vcenter)
    assert refusal.value.code == "placement.infeasible"
    hosts = [line for line in refusal.value.details if line.startswith("pvrdma")]
    assert len(hosts) == 2
    assert all(f"{UPLINK} " in line and " `dvs-gpu`" in line for line in hosts)


def test_vcenter_tells_the_rate_of_the_uplink_that_a_vms_own_nic_leaves_by(lab: Lab, vcenter: Gateway) -> None:
    cluster_spec = spec("plain")
    try:
        assert labs.brought(cluster_spec, lab, vcenter).done
        seen = plan(RunContext(cluster_spec, vcenter, lambda _: None, SystemClock())).inventory
        ours = {vm.name: vm for vm in seen.vms if vm.cluster_mark == "plain"}
        found = [list(each.uplinks.values()) for each in machines(seen, ours).values()]
        assert found == [[Uplink(switch="dvs-gpu", bits_per_s=100e9)]] * 2
    finally:
        destroy(RunContext(cluster_spec, vcenter, lambda _: None, SystemClock()), approve=lambda _: True)


def test_a_port_whose_firmware_has_sriov_off_is_named_for_that(tmp_path: Path) -> None:
    """With SRIOV_EN off vCenter shows a function without SR-IOV: NVIDIA's nmlx5 manual, chapter on SR-IOV."""
    site = tmp_path / "off.toml"
    site.write_text(topology_file("unready-8.0u3").read_text().replace("\nvfs = 8\n", "\nvfs = 0\n"))
    text = labs.cluster_file(
        "off",
        cluster="ampere",
        gpu='{ profile = "A100-40C" }',
        nic='{ kind = "sriov", port_group = "roce" }',
        nodes=1,
        more='[host_config]\nkinds = ["graphics", "sriov"]',
    )
    with labs.running(tmp_path / "state", str(site)) as started:
        gateway = labs.gateway(started)
        try:
            seen = gateway.read_site(Scope())
            found = missing_prerequisites(load_text(text, "cluster.toml"), seen)
        finally:
            gateway.close()
    named = {each.finding.code for each in found if each.firmware}
    assert named == {"host.no-sriov"}
    assert any("SRIOV_EN=1" in command for each in found for command in each.commands)
