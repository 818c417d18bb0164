"""What is missing on a host before it takes nodes is reported with the command to type, where it would help."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.fakes.clock import FakeClock
from tests.fakes.pictures import ROCE, held, quad_8u3, r750xa, vm
from tests.fakes.requirements import cluster, node
from tests.fakes.site import FakeVCenter
from tests.unit.core.sites import provisioned
from vsphere_ml.core.errors import NotPossible
from vsphere_ml.core.hosts.missing_prerequisites import missing_prerequisites
from vsphere_ml.core.model.device_kinds import GpuKind, NicKind
from vsphere_ml.core.model.inventory import DirectPathGpu, Pvrdma
from vsphere_ml.core.model.spec import GpuRequest, HostConfigKind, HostConfigSpec, NicRequest
from vsphere_ml.core.rules.table import BY_ID
from vsphere_ml.flows.cluster.plan import plan
from vsphere_ml.flows.run_context import RunContext

if TYPE_CHECKING:
    from tests.golden import Golden
    from vsphere_ml.core.model.inventory import Host, Inventory
    from vsphere_ml.core.model.spec import ClusterSpec
    from vsphere_ml.flows.cluster.plan import PlacedPlan

NO_NIC = NicRequest(kind=NicKind.NONE)
SRIOV = NicRequest(kind=NicKind.SRIOV, port_group="roce")
MIG = GpuRequest(kind=GpuKind.MIG, profile="A100-3-20C")
PVRDMA = NicRequest(kind=NicKind.PVRDMA, port_group="roce")
WHOLE = GpuRequest(kind=GpuKind.PASSTHROUGH, device="A100")


def site(*hosts: Host) -> Inventory:
    return replace(quad_8u3(hosts=len(hosts), taken=False), hosts=hosts)


def planned(spec: ClusterSpec, picture: Inventory) -> PlacedPlan:
    return plan(RunContext(spec, FakeVCenter(picture), lambda _event: None, FakeClock()))


def shared(host: Host) -> Host:
    return replace(host, gpus=tuple(replace(gpu, graphics_type="shared") for gpu in host.gpus), groups=())


def without_functions(host: Host, *, vfs: int = 0) -> Host:
    nics = tuple(replace(nic, vfs=vfs, sriov_enabled=vfs > 0, most_vfs=16) for nic in host.nics)
    return replace(host, nics=nics, groups=())


def without_capability(host: Host) -> Host:
    nics = tuple(replace(nic, vfs=0, sriov_enabled=False, most_vfs=0) for nic in host.nics)
    return replace(host, nics=nics, groups=())


def with_pvrdma(host: Host, seen: Pvrdma) -> Host:
    adapters = ((seen.vmknic or "vmk1", ROCE),)
    return replace(host, pvrdma=replace(seen, adapters=adapters))


def handed(host: Host) -> Host:
    gpus = tuple(
        DirectPathGpu(address=gpu.address, vendor=0x10DE, device=0x20F1, name="A100", active=False) for gpu in host.gpus
    )
    return replace(host, passthrough_gpus=gpus)


@pytest.mark.parametrize(
    ("asked", "host", "kind", "command"),
    [
        (
            node("node-1", nic=NO_NIC),
            shared(r750xa(1)),
            HostConfigKind.GRAPHICS,
            "esxcli graphics host set --default-type SharedPassthru",
        ),
        (
            node("node-1", nic=SRIOV),
            without_functions(r750xa(1)),
            HostConfigKind.SRIOV,
            'esxcli system module parameters set -m nmlx5_core -p "max_vfs=1,0"',
        ),
        (
            node("node-1", gpu=WHOLE, nic=NO_NIC),
            handed(r750xa(1)),
            HostConfigKind.PASSTHROUGH,
            "esxcli hardware pci pcipassthru set -d 0000:3b:00.0 -e true -a",
        ),
        (node("node-1", gpu=MIG, nic=NO_NIC), r750xa(1), HostConfigKind.MIG, "nvidia-smi -i 0000:3b:00.0 -mig 1"),
        (
            node("node-1", nic=PVRDMA),
            with_pvrdma(r750xa(1), Pvrdma(vmknic="", firewall=True)),
            HostConfigKind.PVRDMA,
            "on the host: esxcli system settings advanced set -o /Net/PVRDMAVmknic -s vmkN;",
        ),
        (
            node("node-1", nic=PVRDMA),
            with_pvrdma(r750xa(1), Pvrdma(vmknic="vmk1", firewall=False)),
            HostConfigKind.PVRDMA,
            "on the host: esxcli network firewall ruleset set -e true -r pvrdma;",
        ),
    ],
    # The same in every process: a host's text has sets in it.
    ids=["graphics", "sriov", "passthrough", "mig", "pvrdma-vmknic", "pvrdma-firewall"],
)
def test_a_refusal_says_what_to_type_and_by_which_rule(
    asked: object, host: Host, kind: HostConfigKind, command: str
) -> None:
    with pytest.raises(NotPossible) as refused:
        planned(cluster((asked,)), site(host))  # type: ignore[arg-type]
    assert refused.value.code == "placement.infeasible"
    assert command in refused.value.hint
    assert f'[host_config] kinds = ["{kind}"]' in refused.value.hint
    rule = refused.value.details[-1].partition("(rule ")[2].partition(")")[0]
    assert rule in BY_ID
    assert refused.value.details[-1].startswith("esx-01.lab.test: ")


def test_mig_on_ampere_is_named_with_its_reboot(golden: Golden) -> None:
    [prerequisite] = missing_prerequisites(cluster((node("node-1", gpu=MIG, nic=NO_NIC),)), site(r750xa(1)))
    golden(prerequisite.commands)


def test_a_host_that_could_take_nodes_is_a_finding_although_others_do() -> None:
    found = planned(cluster((node("node-1", nic=NO_NIC),)), site(shared(r750xa(1)), r750xa(2))).plan
    assert found.placements[0].host_name == "esx-02.lab.test"
    assert [(each.code, each.target) for each in found.diagnostics] == [("host.needs-config", "esx-01.lab.test")]
    assert "(rule host-graphics)" in found.diagnostics[0].message


def test_nodes_that_stand_need_no_further_host() -> None:
    spec = cluster((node("node-1", nic=NO_NIC),))
    done = provisioned(spec, site(shared(r750xa(1)), r750xa(2)))
    assert planned(spec, done).plan.diagnostics == ()


def test_hosts_of_another_use_are_no_findings() -> None:
    picture = site(r750xa(1), handed(r750xa(2)))
    assert planned(cluster((node("node-1", nic=NO_NIC),)), picture).plan.diagnostics == ()


def test_what_the_plan_itself_may_change_is_no_finding() -> None:
    spec = cluster(
        (node("node-1", nic=NO_NIC),), host_config=HostConfigSpec(kinds=frozenset({HostConfigKind.GRAPHICS}))
    )
    assert missing_prerequisites(spec, site(shared(r750xa(1)), r750xa(2))) == ()


def test_a_host_is_not_named_when_the_setting_would_not_help() -> None:
    user = vm("etl-7", "vm-7", powered_on=True)
    busy = held(shared(r750xa(1)), user, [gpu.address for gpu in r750xa(1).gpus])
    assert missing_prerequisites(cluster((node("node-1", nic=NO_NIC),)), site(busy)) == ()


def test_functions_of_other_ports_keep_their_number_in_the_command() -> None:
    host, user = without_functions(r750xa(1)), vm("etl-7", "vm-7").ref
    used_up = replace(host.nics[1], vfs=2, sriov_enabled=True, vf_holders=(user, user))
    picture = site(replace(host, nics=(host.nics[0], used_up)))
    [prerequisite] = missing_prerequisites(cluster((node("node-1", nic=SRIOV),)), picture)
    assert '"max_vfs=1,2"' in prerequisite.commands[1]


def test_what_else_is_in_the_driver_s_string_stays_in_the_command_where_it_is_known(golden: Golden) -> None:
    host = replace(without_functions(r750xa(1)), module_options=(("nmlx5_core", "ecn=1"),))
    [prerequisite] = missing_prerequisites(cluster((node("node-1", nic=SRIOV),)), site(host))
    golden(prerequisite.commands[0])


def test_a_nic_with_sriov_off_in_its_firmware_is_named_with_the_commands_that_switch_it_on() -> None:
    """NVIDIA's nmlx5 manual, SR-IOV: MFT, `mlxconfig set SRIOV_EN=1 NUM_OF_VFS=n`, a reboot, and only then max_vfs."""
    spec, picture = cluster((node("node-1", nic=SRIOV),)), site(without_capability(r750xa(1)))
    (prerequisite,) = missing_prerequisites(spec, picture)
    assert prerequisite.finding.code == "host.no-sriov"
    assert prerequisite.firmware == (picture.hosts[0].nics[0].address,)
    assert any(command.endswith("set SRIOV_EN=1 NUM_OF_VFS=8") for command in prerequisite.commands)
    with pytest.raises(NotPossible) as refused:
        planned(spec, picture)
    assert "SRIOV_EN" in (refused.value.hint or "")
    ready = replace(spec, host_config=HostConfigSpec(kinds=frozenset({HostConfigKind.SRIOV})))
    assert missing_prerequisites(ready, picture) == (prerequisite,)  # vsml does not pretend that it could


def test_a_nic_without_sriov_is_no_matter_to_nodes_that_want_none() -> None:
    assert missing_prerequisites(cluster((node("node-1", nic=NO_NIC),)), site(without_capability(r750xa(1)))) == ()
