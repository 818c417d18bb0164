"""Hosts made ready by the plan itself: what is done in which order, what is refused, and what a cut run leaves."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.fakes.esx import esx
from tests.fakes.hosts import FakeHosts
from tests.fakes.pictures import A100_GROUP, held, quad_8u3, vm
from tests.fakes.requirements import cluster, node
from tests.fakes.site import Cut, FakeVCenter
from vsphere_ml.core.errors import NotPossible, VSphereError
from vsphere_ml.core.hosts.host_changes import EnterMaintenance
from vsphere_ml.core.hosts.host_plan import DisruptionPolicy
from vsphere_ml.core.model.device_kinds import GpuKind, NicKind
from vsphere_ml.core.model.esxi_state import Automation, DrsState
from vsphere_ml.core.model.inventory import DirectPathGpu, HostRef, PciAddress, VgpuProfile
from vsphere_ml.core.model.placement import Pairing
from vsphere_ml.core.model.spec import Evacuation, GpuRequest, HostConfigKind, HostConfigSpec, NicRequest
from vsphere_ml.core.placement.explain import explain
from vsphere_ml.core.placement.solve import solve
from vsphere_ml.flows.cluster import saved
from vsphere_ml.flows.cluster.proposal import GuestConfig, propose
from vsphere_ml.flows.cluster.provision import ProvisionTask, provision
from vsphere_ml.flows.consent import Consent
from vsphere_ml.flows.hosts.host_configuration import HostConfiguration
from vsphere_ml.flows.hosts.host_session import HostSession
from vsphere_ml.flows.run_context import RunContext

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.golden import Golden
    from vsphere_ml.core.hosts.host_changes import HostChange
    from vsphere_ml.core.model.inventory import Host, Inventory
    from vsphere_ml.core.model.spec import ClusterSpec, NodeSpec
    from vsphere_ml.core.plan.plan import Plan
    from vsphere_ml.flows.cluster.report import Report
    from vsphere_ml.flows.cluster.saved import SavedPlan

SRIOV = NicRequest(kind=NicKind.SRIOV, port_group="roce")
ALL = frozenset(HostConfigKind)


@dataclass(slots=True)
class Rig:
    spec: ClusterSpec
    site: FakeVCenter
    hosts: FakeHosts
    shown: list[Plan] = field(default_factory=list)
    shells: bool = True

    def open_session(self, *, downtime: bool = False) -> HostSession:
        return HostSession(
            hosts=self.hosts,
            notify=lambda _event: None,
            shells=self.hosts if self.shells else None,
            leave=DisruptionPolicy(downtime=downtime),
        )

    def run(self, *, downtime: bool = False, dry_run: bool = False, plan: SavedPlan | None = None) -> Report:
        def approve(proposal: object) -> bool:
            self.shown.append(proposal.plan)  # type: ignore[attr-defined]
            return True

        return provision(
            RunContext(self.spec, self.site, lambda _event: None, self.site.clock),
            approve=approve,
            session=self.open_session(downtime=downtime),
            task=ProvisionTask(consent=Consent(downtime=downtime), dry_run=dry_run, saved=plan),
        )

    def done(self) -> list[str]:
        return [type(each).__name__ for each in self.hosts.changes]

    def host(self, number: int = 0) -> Host:
        return self.site.inventory.hosts[number]


def rig(nodes: tuple[NodeSpec, ...], picture: Inventory, *kinds: HostConfigKind, **wanted: Any) -> Rig:
    spec = cluster(nodes, host_config=HostConfigSpec(kinds=frozenset(kinds) if kinds else ALL, **wanted))
    site = FakeVCenter(picture)
    return Rig(spec, site, FakeHosts(site, {host.ref: esx(host) for host in picture.hosts}))


def unready(hosts: int = 1, **knobs: object) -> Inventory:
    """Return the 8.0 U3 site as ESXi comes: graphics `shared`, SR-IOV off, no device groups."""
    picture = quad_8u3(hosts=hosts, taken=False)
    return replace(picture, hosts=tuple(_unready(host, **knobs) for host in picture.hosts))


def _unready(host: Host, **knobs: object) -> Host:
    plain = replace(
        host,
        groups=(),
        gpus=tuple(replace(gpu, graphics_type="shared") for gpu in host.gpus),
        nics=tuple(replace(nic, vfs=0, sriov_enabled=False, most_vfs=16) for nic in host.nics),
    )
    return replace(plain, **knobs)  # type: ignore[arg-type]


def whole(host: Host, board: int = 0x20F1) -> Host:
    """Return the host with GPUs that can be handed through, and are not yet."""
    gpus = tuple(
        DirectPathGpu(address=gpu.address, vendor=0x10DE, device=board, name="A100", active=False, system_id="id")
        for gpu in host.gpus
    )
    return replace(host, passthrough_gpus=gpus, rebinds=True)


def test_an_unready_host_is_made_ready_and_its_nodes_follow_in_one_run() -> None:
    site = rig((node("node-1", nic=SRIOV),), unready())
    report = site.run()
    assert report.done
    steps = "WriteRecord EnterMaintenance SetGraphics SetFunctions Reboot ExitMaintenance WriteRecord"
    assert site.done() == steps.split()
    assert {gpu.graphics_type for gpu in site.host().gpus} == {"sharedDirect"}
    assert [nic.vfs for nic in site.host().nics] == [1, 0]
    assert not site.host().maintenance
    assert [vm.powered_on for vm in site.site.inventory.vms if vm.name == "node-1"] == [True]


def test_a_second_run_finds_nothing_to_do_and_asks_nobody() -> None:
    site = rig((node("node-1", nic=SRIOV),), unready())
    site.run()
    before, asked = list(site.hosts.changes), len(site.shown)
    report = site.run()
    assert (report.applied, report.done, site.hosts.changes, len(site.shown)) == (False, True, before, asked)


def test_a_plan_shows_the_hosts_first_and_touches_nothing(golden: Golden) -> None:
    site = rig((node("node-1", nic=SRIOV),), unready())
    plan = site.run(dry_run=True).plan
    golden([fact.name for fact in plan.hosts[0].facts.unmet])
    assert plan.hosts[0].reboots
    assert plan.stages[0].title == "folder"
    assert (site.hosts.changes, site.site.done) == ([], [])


def test_nothing_is_changed_on_hosts_that_nobody_asked_for() -> None:
    site = rig((node("node-1", nic=SRIOV),), unready(), HostConfigKind.GRAPHICS)
    with pytest.raises(NotPossible) as refused:
        site.run()
    assert refused.value.code == "placement.infeasible"
    assert "SR-IOV off" in str(refused.value.details)
    assert site.hosts.changes == []


def test_a_host_that_needs_nothing_comes_before_one_that_must_be_made_ready() -> None:
    ready = quad_8u3(hosts=2, taken=False)
    picture = replace(ready, hosts=(_unready(ready.hosts[0]), ready.hosts[1]))
    site = rig((node("node-1", nic=SRIOV),), picture)
    assert site.run().placements[0].host_name == "esx-02.lab.test"
    assert site.hosts.changes == []


def test_nodes_that_are_spread_get_a_host_of_their_own_that_is_made_ready() -> None:
    ready = quad_8u3(hosts=2, taken=False)
    picture = replace(ready, hosts=(_unready(ready.hosts[0]), ready.hosts[1]))
    site = rig((node("node-1", nic=SRIOV), node("node-2", nic=SRIOV)), picture)
    report = site.run()
    assert report.done
    assert {placement.host_name for placement in report.placements} == {"esx-01.lab.test", "esx-02.lab.test"}
    assert {each.host_name for each in site.hosts.changes} == {"esx-01.lab.test"}


def test_a_port_gets_as_many_functions_as_its_nodes_and_others_need_or_as_the_file_says(golden: Golden) -> None:
    nodes = tuple(node(f"node-{number}", nic=SRIOV, cpus=8) for number in (1, 2, 3, 4))
    site = rig(nodes, unready())
    assert site.run().done
    assert [nic.vfs for nic in site.host().nics] == [2, 2]
    many = rig(nodes[:1], unready(), virtual_functions=32)
    golden(many.run().plan.hosts[0].warnings)
    assert [nic.vfs for nic in many.host().nics] == [16, 0]
    more = rig(nodes[:1], unready(), virtual_functions=8)
    assert more.run().done
    assert [nic.vfs for nic in more.host().nics] == [8, 0]


def test_passthrough_gpus_are_switched_over_at_once_where_the_host_can_and_no_vm_is_stopped() -> None:
    picture = unready()
    bystander = vm("web-1", "vm-9", powered_on=True)
    picture = replace(picture, hosts=(whole(picture.hosts[0]),), vms=(*picture.vms, bystander))
    asked = node("node-1", gpu=GpuRequest(kind=GpuKind.PASSTHROUGH, device="A100"), nic=NicRequest(kind=NicKind.NONE))
    site = rig((asked,), picture)
    assert site.run().done
    assert site.done() == ["WriteRecord", "SetPassthrough"]
    assert [gpu.active for gpu in site.host().passthrough_gpus] == [True, False, False, False]


def test_a_host_that_wants_a_reboot_for_passthrough_gets_one() -> None:
    picture = unready()
    picture = replace(picture, hosts=(replace(whole(picture.hosts[0]), rebinds=False),))
    asked = node("node-1", gpu=GpuRequest(kind=GpuKind.PASSTHROUGH, device="A100"), nic=NicRequest(kind=NicKind.NONE))
    site = rig((asked,), picture)
    assert site.run().done
    assert "Reboot" in site.done()


def test_a_port_that_is_a_switchs_uplink_is_never_handed_over_whole(golden: Golden) -> None:
    picture = unready()
    uplink, free = picture.hosts[0].nics
    host = replace(picture.hosts[0], nics=(replace(uplink, switch="vSwitch0"), free), rebinds=True)
    asked = node("node-1", nic=NicRequest(kind=NicKind.PASSTHROUGH))
    site = rig((asked,), replace(picture, hosts=(host,)), HostConfigKind.GRAPHICS, HostConfigKind.PASSTHROUGH)
    assert site.run().done
    assert [nic.passthrough for nic in site.host().nics] == [False, True]
    none = rig((asked,), replace(picture, hosts=(replace(host, nics=host.nics[:1]),)))
    with pytest.raises(NotPossible) as caught:
        none.run()
    assert (caught.value.code, caught.value.target) == ("placement.infeasible", "node-1")
    golden(caught.value)


def test_mig_is_switched_on_over_ssh_and_ampere_is_rebooted_for_it() -> None:
    asked = node("node-1", gpu=GpuRequest(kind=GpuKind.MIG, profile="A100-3-20C"), nic=NicRequest(kind=NicKind.NONE))
    site = rig((asked,), quad_8u3(hosts=1, taken=False))
    assert site.run().done
    commands = [command for _, command in site.hosts.commands if "-mig" in command]
    assert commands == ["nvidia-smi -i 0000:3b:00.0 -mig 1"]
    assert site.done() == ["WriteRecord", "EnterMaintenance", "Reboot", "ExitMaintenance", "WriteRecord"]
    assert [gpu.vgpu_mode for gpu in site.host().gpus][:2] == ["multiInstanceGpu", "sameSize"]


class Vanishing(FakeHosts):
    """Hosts of which each is taken out of vCenter once it is in maintenance mode."""

    def perform(self, change: HostChange, deadline_s: float, notify: Callable[[str], None]) -> None:
        super().perform(change, deadline_s, notify)
        if isinstance(change, EnterMaintenance):
            del self.there[change.host]


def test_a_host_that_is_taken_out_of_vcenter_meanwhile_fails_by_name(golden: Golden) -> None:
    asked = node("node-1", gpu=GpuRequest(kind=GpuKind.MIG, profile="A100-3-20C"), nic=NicRequest(kind=NicKind.NONE))
    site = rig((asked,), quad_8u3(hosts=1, taken=False))
    site.hosts = Vanishing(site.site, site.hosts.there)
    with pytest.raises(VSphereError) as failed:
        site.run()
    assert failed.value.code == "host.not-ready"
    golden(failed.value.details)


def test_no_more_gpus_are_switched_to_mig_than_the_nodes_need() -> None:
    gpu, alone = GpuRequest(kind=GpuKind.MIG, profile="A100-3-20C"), NicRequest(kind=NicKind.NONE)
    asked = tuple(node(f"node-{number}", gpu=gpu, nic=alone, cpus=4) for number in (1, 2))
    site = rig(asked, quad_8u3(hosts=1, taken=False))
    assert site.run().done
    commands = [command for _, command in site.hosts.commands if "-mig" in command]
    assert commands == ["nvidia-smi -i 0000:3b:00.0 -mig 1"]


def test_a_gpu_that_needs_nothing_goes_before_its_like_that_must_be_set_up() -> None:
    picture = quad_8u3(hosts=1, taken=False)
    first, second, *others = picture.hosts[0].gpus
    sliced = replace(picture.hosts[0], gpus=(first, replace(second, vgpu_mode="multiInstanceGpu"), *others))
    handed = whole(unready().hosts[0])
    first_whole, second_whole, *_ = handed.passthrough_gpus
    active = replace(handed, passthrough_gpus=(first_whole, replace(second_whole, active=True)))
    for host, gpu in (
        (sliced, GpuRequest(kind=GpuKind.MIG, profile="A100-3-20C")),
        (active, GpuRequest(kind=GpuKind.PASSTHROUGH, device="A100")),
    ):
        asked = node("node-1", gpu=gpu, nic=NicRequest(kind=NicKind.NONE))
        spec = cluster((asked,), host_config=HostConfigSpec(kinds=ALL))
        (placement,) = solve(spec, replace(picture, hosts=(host,))).placements
        assert placement.gpus == (second.address,)


def test_without_a_door_mig_is_not_counted_on(golden: Golden) -> None:
    asked = node("node-1", gpu=GpuRequest(kind=GpuKind.MIG, profile="A100-3-20C"), nic=NicRequest(kind=NicKind.NONE))
    site = rig((asked,), quad_8u3(hosts=1, taken=False))
    site.shells = False
    with pytest.raises(NotPossible) as caught:
        site.run()
    assert (caught.value.code, caught.value.target) == ("placement.infeasible", "node-1")
    golden(caught.value)


def test_a_door_that_does_not_open_is_a_refusal_with_the_command_to_type() -> None:
    asked = node("node-1", gpu=GpuRequest(kind=GpuKind.MIG, profile="A100-3-20C"), nic=NicRequest(kind=NicKind.NONE))
    site = rig((asked,), quad_8u3(hosts=1, taken=False))
    site.hosts.there[HostRef("host-1")].fails.add("ssh")
    with pytest.raises(NotPossible) as refused:
        site.run()
    assert refused.value.code == "host.not-known"
    assert refused.value.hint == "nvidia-smi -i 0000:3b:00.0 -mig 1"
    assert site.hosts.changes == []


def test_others_vms_on_the_host_keep_it_from_being_rebooted(golden: Golden) -> None:
    picture = unready()
    site = rig((node("node-1", nic=SRIOV),), replace(picture, vms=(*picture.vms, vm("web-1", "vm-9", powered_on=True))))
    with pytest.raises(NotPossible) as refused:
        site.run()
    assert refused.value.code == "placement.infeasible"
    golden(refused.value.details)
    assert site.hosts.changes == []


def test_a_host_where_nobody_else_runs_is_made_ready_instead_and_agents_are_nobody() -> None:
    picture = unready(2)
    others = (
        vm("web-1", "vm-9", powered_on=True),
        vm("vCLS-1", "vm-8", powered_on=True, host=HostRef("host-2"), agent=True),
    )
    site = rig((node("node-1", nic=SRIOV),), replace(picture, vms=(*picture.vms, *others)))
    site.hosts.there[HostRef("host-2")].agents.add("vCLS-1")
    assert site.run().placements[0].host_name == "esx-02.lab.test"
    assert {each.host_name for each in site.hosts.changes} == {"esx-02.lab.test"}


def test_a_host_that_drs_empties_is_a_candidate() -> None:
    picture = unready()
    clusters = tuple(replace(each, drs="fullyAutomated") for each in picture.clusters)
    others = (*picture.vms, vm("web-1", "vm-9", powered_on=True))
    nodes = (node("node-1", nic=SRIOV),)
    site = rig(nodes, replace(picture, vms=others, clusters=clusters), evacuate=Evacuation.DRS)
    site.hosts.there[HostRef("host-1")].drs = DrsState(automation=Automation.FULL)
    (host,) = site.run(dry_run=True).plan.hosts
    assert host.migrated == ("web-1",)
    assert not host.refusals


def test_vms_of_others_that_come_meanwhile_still_keep_the_host_from_being_rebooted() -> None:
    site = rig((node("node-1", nic=SRIOV),), unready())
    picture = site.site.inventory
    # An agent by the first look, so that the host is chosen; the look at the host itself says otherwise.
    site.site.inventory = replace(picture, vms=(*picture.vms, vm("web-1", "vm-9", powered_on=True, agent=True)))
    with pytest.raises(NotPossible) as refused:
        site.run()
    assert refused.value.code == "ats.foreign-vms"


def test_a_gpu_that_somebody_uses_is_left_in_its_mode(golden: Golden) -> None:
    picture = quad_8u3(hosts=1, taken=False)
    user = vm("etl-7", "vm-7", powered_on=True)
    busy = held(picture.hosts[0], user, [gpu.address for gpu in picture.hosts[0].gpus])
    asked = node("node-1", gpu=GpuRequest(kind=GpuKind.MIG, profile="A100-3-20C"), nic=NicRequest(kind=NicKind.NONE))
    site = rig((asked,), replace(picture, hosts=(busy,), vms=(user, *picture.vms)))
    with pytest.raises(NotPossible) as caught:
        site.run()
    assert (caught.value.code, caught.value.target) == ("placement.infeasible", "node-1")
    golden(caught.value)


def test_our_own_running_nodes_are_stopped_only_when_that_is_allowed_and_started_again() -> None:
    nodes = (node("node-1", nic=SRIOV), node("node-2", nic=SRIOV), node("node-3", nic=SRIOV))
    site = rig(nodes[:1], unready())
    assert site.run().done
    site.spec = replace(site.spec, nodes=nodes)
    with pytest.raises(NotPossible) as refused:
        site.run()
    assert refused.value.code == "plan.interrupts"
    assert site.run(downtime=True).done
    assert {vm.name for vm in site.site.inventory.vms if vm.powered_on} == {"node-1", "node-2", "node-3"}


def test_a_setting_that_is_not_in_effect_after_the_reboot_ends_the_run_before_any_vm() -> None:
    site = rig((node("node-1", nic=SRIOV),), unready())
    machine = site.hosts.there[HostRef("host-1")]

    def forget(change: object) -> None:
        if type(change).__name__ == "Reboot":
            machine.graphics[0] = "shared"

    site.hosts.before = forget
    with pytest.raises(VSphereError) as failed:
        site.run()
    assert failed.value.code == "host.not-ready"
    assert not machine.maintenance
    assert [vm.name for vm in site.site.inventory.vms if not vm.template] == []


@pytest.mark.parametrize("after", range(1, 9))
def test_a_run_that_is_killed_anywhere_is_finished_by_the_next(after: int) -> None:
    site = rig((node("node-1", nic=SRIOV), node("node-2", nic=SRIOV)), unready(2))
    site.hosts.cut_after = after
    with pytest.raises(Cut):
        site.run()
    site.hosts.mend()
    report = site.run()
    assert report.done
    assert {placement.host_name for placement in report.placements} == {"esx-01.lab.test", "esx-02.lab.test"}
    assert not any(host.maintenance for host in site.site.inventory.hosts)
    assert not site.run().applied


@pytest.mark.parametrize("after", range(1, 7))
def test_a_run_that_is_killed_around_mig_mode_is_finished_by_the_next(after: int) -> None:
    asked = node("node-1", gpu=GpuRequest(kind=GpuKind.MIG, profile="A100-3-20C"), nic=NicRequest(kind=NicKind.NONE))
    site = rig((asked,), quad_8u3(hosts=1, taken=False))
    site.hosts.cut_after = after
    with pytest.raises(Cut):
        site.run()
    site.hosts.mend()
    assert site.run().done
    assert not site.host().maintenance
    assert [gpu.vgpu_mode == "multiInstanceGpu" for gpu in site.host().gpus] == [True, False, False, False]
    assert not site.run().applied


def test_a_saved_plan_holds_for_the_hosts_it_was_made_for(golden: Golden) -> None:
    site = rig((node("node-1", nic=SRIOV),), unready())
    ready = HostConfiguration(site.spec, site.open_session(), site.site.clock)
    proposal = propose(
        RunContext(site.spec, site.site, lambda _event: None, site.site.clock),
        given=GuestConfig(first_boots={}),
        ready=ready,
    )
    agreed = saved.load(saved.save(proposal, site.spec), "monday.plan")
    machine = site.hosts.there[HostRef("host-1")]
    machine.functions[PciAddress("0000:3d:00.0")].vfs = [4, 4]
    with pytest.raises(NotPossible) as stale:
        site.run(plan=agreed)
    assert stale.value.code == "plan.stale"
    golden(stale.value.details)
    machine.functions[PciAddress("0000:3d:00.0")].vfs = [0, 0]
    assert site.run(plan=agreed).done


@pytest.mark.parametrize("shells", [True, False])
def test_the_explanation_counts_on_mig_mode_where_the_plan_does_and_nowhere_else(*, shells: bool) -> None:
    picture = quad_8u3(hosts=2, taken=False)
    plain, other = picture.hosts
    gpus = tuple(replace(gpu, vgpu_mode="multiInstanceGpu") for gpu in other.gpus)
    sliced = replace(other, gpus=gpus, profiles=(VgpuProfile(name="grid_a100-3-20c"),))
    gpu, alone = GpuRequest(kind=GpuKind.MIG, profile="A100-3-20C"), NicRequest(kind=NicKind.NONE)
    site = rig((node("node-1", gpu=gpu, nic=alone),), replace(picture, hosts=(plain, sliced)))
    site.shells = shells
    proposal = propose(
        RunContext(site.spec, site.site, lambda _event: None, site.site.clock),
        given=GuestConfig(first_boots={}),
        ready=HostConfiguration(site.spec, site.open_session(), site.site.clock),
    )
    (why,) = explain(proposal.solution)
    assert why.host == proposal.placement.placements[0].host_name == sliced.name
    assert [(each.host, each.fits) for each in why.losers] == [(plain.name, shells)]


def test_what_a_ready_host_offers_beside_changes_nothing_that_was_agreed_to() -> None:
    site = rig((node("node-1"),), unready())

    def grouped(change: object) -> None:  # a host whose graphics type is Shared Direct offers device groups, too
        if type(change).__name__ == "ExitMaintenance":
            picture = site.site.inventory
            hosts = tuple(replace(host, groups=(A100_GROUP,)) for host in picture.hosts)
            site.site.inventory = replace(picture, hosts=hosts)

    site.hosts.before = grouped
    report = site.run()
    assert report.done
    assert {placement.pairing for placement in (*report.plan.placements, *report.placements)} == {Pairing.PAIRING}


def test_the_report_says_which_hosts_were_made_ready() -> None:
    report = rig((node("node-1", nic=SRIOV),), unready()).run()
    assert [each.plan.name for each in report.hosts] == ["esx-01.lab.test"]
    assert report.hosts[0].rebooted_s == 240.0
