"""What every vCenter behind the port promises, the in-memory one and the real one alike.

A module that runs it defines a fixture `connect` that returns a new client of one site: the 8.0 U3 lab's, or a picture
of it. Each test works on a cluster of its own name, so tests can share a site.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import pytest

from vsphere_ml.core.errors import NotPossible, VsmlError
from vsphere_ml.core.model.cpu_times import CpuTimes
from vsphere_ml.core.model.inventory import EthernetCard, HostRef, Network, StorageCompliance, Vm, VmSettings, VmStorage
from vsphere_ml.core.model.marks import CLUSTER_KEY, NODE_KEY
from vsphere_ml.core.model.placement import Target, WantGroup, WantNic, WantSriov, WantVgpu
from vsphere_ml.core.model.spec import Address
from vsphere_ml.core.nodes.firstboot import ADDRESS_KEY, Customization, FirstBoot
from vsphere_ml.core.plan.changes import (
    STORAGE_POLICY,
    AttachDevices,
    CloneVm,
    CreateFolder,
    CustomizeGuest,
    DeleteFolder,
    DeleteRule,
    DeleteVm,
    MakeRule,
    Marks,
    MarkVm,
    MoveToFolder,
    NewMac,
    PowerOff,
    PowerOn,
    SetSettings,
    SettingDrift,
    UpgradeHardware,
)
from vsphere_ml.core.ports.vcenter import Scope
from vsphere_ml.core.units import gib

if TYPE_CHECKING:
    from vsphere_ml.core.model.inventory import Inventory, StoragePolicy
    from vsphere_ml.core.model.placement import WantedDevice
    from vsphere_ml.core.plan.changes import Change
    from vsphere_ml.core.ports.vcenter import TaskHandle, VCenter

Connect: TypeAlias = Callable[[], "VCenter"]
SOURCE = "ubuntu-22.04-gpu"
FOREIGN = "etl-7"
PROFILE = "grid_a100-40c"
FILE = "[vsan] etl-7/etl-7.vmx"


@dataclass(slots=True)
class Rig:
    """One client and one cluster's name, with what tests say often."""

    vcenter: VCenter
    cluster: str
    source: str = SOURCE
    storage_policy: str | None = None

    def read_site(self) -> Inventory:
        vms = frozenset({self.source, FOREIGN})
        return self.vcenter.read_site(Scope(owner=self.cluster, vms=vms, storage_policy=self.storage_policy))

    def policy(self, name: str) -> StoragePolicy:
        return next(each for each in self.read_site().storage_policies if each.name == name)

    def settle(self, *changes: Change) -> list[VsmlError | None]:
        """Start all changes, then wait for all; return each one's error, in their order."""
        return self.end(*self.vcenter.start(changes))

    def end(self, *tasks: TaskHandle) -> list[VsmlError | None]:
        """Wait until all these are done; return each one's error, in their order."""
        errors: dict[int, VsmlError | None] = {}
        for _ in range(1000):
            open_ones = [task for task in tasks if task.id not in errors]
            if not open_ones:
                break
            for update in self.vcenter.wait(open_ones, 10.0):
                if update.done:
                    errors[update.task.id] = update.error
        return [errors[task.id] for task in tasks]

    def do(self, *changes: Change) -> None:
        for error in self.settle(*changes):
            if error is not None:
                raise error

    def refused(self, change: Change) -> str:
        """Return the code with which a change is refused."""
        (error,) = self.settle(change)
        assert error is not None, f"{change} was carried out"
        return error.code

    def target(self, *devices: WantedDevice) -> Target:
        return Target(
            cpus=8,
            memory=gib(64),
            disk=gib(60),
            hardware_version=20,
            cpu_reservation_mhz=0,
            latency="normal",
            extra_config={
                "pciPassthru.use64bitMMIO": "TRUE",
                "pciPassthru.64bitMMIOSizeGB": "256",
                "numa.nodeAffinity": "1",
            },
            devices=devices,
        )

    def clone(self, vm: str, *devices: WantedDevice, host: int = 0, folder: str = "") -> CloneVm:
        site = self.read_site()
        source, place = next(vm for vm in site.vms if vm.name == self.source), site.hosts[host]
        return CloneVm(
            vm=vm,
            marks=Marks(cluster=self.cluster, node=vm),
            source=source.ref,
            source_name=self.source,
            snapshot=None,
            host=place.ref,
            host_name=place.name,
            pool=site.clusters[0].root_pool,
            datastore=next(each.ref for each in site.datastores if each.name == "vsan"),
            folder=folder,
            target=self.target(*devices),
            devices=False,
        )

    def network(self, name: str) -> Network:
        return next(each for each in self.read_site().networks if each.name == name)

    def nic(self) -> WantNic:
        network = self.network("vm-mgmt")
        return WantNic(network=network.ref, network_name=network.name)

    def equip(self, vm: str, *devices: WantedDevice, host: int = 0) -> None:
        self.do(self.clone(vm, host=host))
        self.do(UpgradeHardware(vm=vm, version=20))
        self.do(AttachDevices(vm=vm, add=devices))

    def vm(self, name: str) -> Vm:
        return next(vm for vm in self.read_site().vms if vm.name == name)

    def settings(self, name: str) -> VmSettings:
        settings = self.vm(name).settings
        assert settings is not None
        return settings

    def host(self, ref: HostRef | None) -> str:
        return next(host.name for host in self.read_site().hosts if host.ref == ref)

    def sweep(self) -> None:
        """Delete whatever the cluster has."""
        mine = [vm for vm in self.read_site().vms if vm.cluster_mark == self.cluster]
        self.do(*(PowerOff(vm=vm.name) for vm in mine))
        self.do(*(DeleteVm(vm=vm.name) for vm in mine))


@pytest.fixture
def rig(connect: Connect, request: pytest.FixtureRequest) -> Iterator[Rig]:
    made = Rig(connect(), f"c{abs(hash(request.node.name)) % 10**6}")
    yield made
    made.sweep()
    made.vcenter.close()


class VCenterContract:
    def test_a_look_finds_the_site_by_its_names(self, rig: Rig) -> None:
        site = rig.read_site()
        assert [host.name for host in site.hosts] == [f"esx-0{n}.lab.test" for n in (1, 2, 3, 4)]
        assert [cluster.name for cluster in site.clusters] == ["gpu"]
        assert {"vm-mgmt", "roce"} <= {network.name for network in site.networks}
        assert {"vsan", "nfs-images"} == {datastore.name for datastore in site.datastores}
        assert site.folders[0].path == ""

    def test_a_look_shows_where_devices_sit_and_who_has_them(self, rig: Rig) -> None:
        host = next(host for host in rig.read_site().hosts if host.name == "esx-02.lab.test")
        assert [gpu.address for gpu in host.gpus] == ["0000:3b:00.0", "0000:3c:00.0", "0000:b3:00.0", "0000:b4:00.0"]
        assert [host.numa_of(gpu.address) for gpu in host.gpus] == [0, 0, 1, 1]
        assert host.pci[host.gpus[0].address].parent == host.pci[host.nics[0].address].parent
        assert [use.vm_name for gpu in host.gpus for use in gpu.used_by] == [FOREIGN]
        assert host.memory_reserved == gib(64)

    def test_a_clone_is_what_was_asked_for_and_carries_our_mark(self, rig: Rig) -> None:
        rig.do(rig.clone("n-1", host=2))
        vm, settings = rig.vm("n-1"), rig.settings("n-1")
        assert (vm.cluster_mark, vm.node_mark) == (rig.cluster, "n-1")
        assert (vm.powered_on, vm.template, rig.host(vm.host)) == (False, False, "esx-03.lab.test")
        assert (vm.cpus, vm.memory, settings.disk) == (8, gib(64), gib(60))
        assert (settings.memory_reservation, settings.memory_locked) == (gib(64), True)
        assert (settings.firmware, settings.secure_boot, settings.latency) == ("efi", False, "normal")
        wanted = {CLUSTER_KEY: rig.cluster, NODE_KEY: "n-1", "numa.nodeAffinity": "1"}
        assert wanted.items() <= settings.extra_config.items()
        assert settings.devices == ()

    def test_a_clone_carries_its_first_boot_and_loses_what_an_empty_value_takes_away(self, rig: Rig) -> None:
        first = FirstBoot(user="ubuntu", address=None, keys={"guestinfo.metadata": "e30=", "guestinfo.left": "behind"})
        rig.do(replace(rig.clone("n-1"), first_boot=first))
        assert first.keys.items() <= rig.settings("n-1").extra_config.items()
        second = replace(first, keys={"guestinfo.left": ""})
        rig.source = "n-1"
        rig.do(replace(rig.clone("n-2"), first_boot=second))
        assert "guestinfo.left" not in rig.settings("n-2").extra_config
        assert rig.settings("n-2").extra_config["guestinfo.metadata"] == "e30="

    def test_a_clone_has_its_storage_policy_and_gets_another_while_it_runs(self, rig: Rig) -> None:
        rig.storage_policy = "gold"
        gold, silver, clone = rig.policy("gold"), rig.policy("silver"), rig.clone("n-1")
        stores = {each.ref: each.name for each in rig.read_site().datastores}
        assert {stores[ref] for ref in gold.datastores} == {"vsan"}
        assert silver.datastores == frozenset()  # only asked of the policy that is named
        rig.do(replace(clone, target=replace(clone.target, storage_policy=gold)))
        compliant = VmStorage(policies=("gold",), compliance=frozenset({StorageCompliance.COMPLIANT}))
        assert rig.settings("n-1").storage == compliant
        assert rig.vcenter.read(("n-1",))[0].settings == rig.settings("n-1")
        rig.do(PowerOn(vm="n-1"))
        other = replace(rig.target(), storage_policy=silver)
        drift = (SettingDrift(STORAGE_POLICY, "gold", "silver"),)
        rig.do(SetSettings(vm="n-1", target=other, drift=drift))
        found = VmStorage(policies=("silver",), compliance=frozenset({StorageCompliance.NON_COMPLIANT}))
        assert rig.settings("n-1").storage == found

    def test_storage_policies_are_not_told_where_nobody_asks(self, rig: Rig) -> None:
        rig.do(rig.clone("n-1"))
        assert rig.read_site().storage_policies == ()
        assert rig.settings("n-1").storage is None
        rig.storage_policy = "gold"
        storage = rig.settings("n-1").storage
        assert storage is not None
        assert storage.policies == ("",)

    def test_a_storage_policy_that_is_gone_is_refused(self, rig: Rig) -> None:
        rig.storage_policy = "gold"
        clone, gone = rig.clone("n-1"), replace(rig.policy("gold"), id="no-such-policy")
        assert (
            rig.refused(replace(clone, target=replace(clone.target, storage_policy=gone))) == "vsphere.invalid-argument"
        )

    def test_hosts_tell_their_vgpu_manager(self, rig: Rig) -> None:
        hosts = [host.ref for host in rig.read_site().hosts]
        assert set(rig.vcenter.vgpu_managers(hosts[:2])) == set(hosts[:2])
        assert set(rig.vcenter.vgpu_managers(hosts).values()) == {"535.183.04"}
        assert rig.vcenter.vgpu_managers([HostRef("host-999999")]) == {}

    def test_what_cpus_waited_for_is_told_of_vms_that_run(self, rig: Rig) -> None:
        rig.equip("n-1")
        rig.read_site()
        assert rig.vcenter.cpu_times(["n-1", "nobody"], 60.0) == {}
        rig.do(PowerOn(vm="n-1"))
        assert rig.vcenter.cpu_times(["n-1", "nobody"], 60.0) == {"n-1": CpuTimes(ready=0.001, costop=0.0001)}

    def test_a_guest_is_customized_before_its_first_boot_and_telling_it_again_is_no_failure(self, rig: Rig) -> None:
        rig.equip("n-1", rig.nic())
        customization = Customization(host_name="n-1", domain="lab.test", address=Address(address="10.0.0.11/24"))
        rig.do(CustomizeGuest(vm="n-1", customization=customization))
        assert rig.settings("n-1").extra_config[ADDRESS_KEY] == "10.0.0.11/24"
        rig.do(CustomizeGuest(vm="n-1", customization=customization))
        rig.do(PowerOn(vm="n-1"))
        assert rig.refused(CustomizeGuest(vm="n-1", customization=customization)) == "vsphere.power-state"

    def test_a_customization_by_a_name_that_vcenter_does_not_know_is_refused(self, rig: Rig) -> None:
        rig.equip("n-1", rig.nic())
        nobody = Customization(host_name="n-1", domain="lab.test", spec="nobody made this")
        assert rig.refused(CustomizeGuest(vm="n-1", customization=nobody)) == "vsphere.no-customization"

    def test_a_file_of_a_datastore_is_found_and_fetched(self, rig: Rig) -> None:
        rig.read_site()
        answers: list[tuple[int, int]] = []
        here = rig.vcenter.fetch(FILE, lambda done, total: answers.append((done, total)))
        size = rig.vcenter.file_size(FILE)
        assert (here.name, here.stat().st_size) == (FILE.rpartition("/")[2], size)
        assert answers[-1:] == [(size, size)]
        with pytest.raises(VsmlError) as caught:
            rig.vcenter.file_size("[vsan] nothing/here.run")
        assert caught.value.code == "datastore.no-file"

    def test_vms_are_read_back_as_a_look_would_read_them(self, rig: Rig) -> None:
        rig.read_site()
        rig.do(rig.clone("n-1"), rig.clone("n-2", host=2))
        looked = [rig.vm("n-1"), rig.vm("n-2")]
        assert sorted(rig.vcenter.read(("n-1", "n-2")), key=lambda vm: vm.name) == looked

    def test_a_clone_is_marked_before_the_lock_is_given_back(self, rig: Rig, connect: Connect) -> None:
        clone = rig.clone("n-1")
        with rig.vcenter.hold(rig.cluster):
            rig.do(clone)
        other = Rig(connect(), rig.cluster)
        assert other.vm("n-1").cluster_mark == rig.cluster
        other.vcenter.close()

    def test_only_vms_of_ours_that_are_there_are_read_back(self, rig: Rig) -> None:
        rig.do(rig.clone("n-1"), rig.clone("n-2"))
        rig.do(DeleteVm(vm="n-2"))
        assert [vm.name for vm in rig.vcenter.read(("n-1", "n-2", FOREIGN, "nobody"))] == ["n-1"]

    def test_a_name_that_is_taken_is_refused(self, rig: Rig) -> None:
        rig.do(rig.clone("n-1"))
        assert rig.refused(rig.clone("n-1")) == "vsphere.duplicate-name"

    def test_devices_are_attached_each_with_a_key_of_its_own(self, rig: Rig) -> None:
        roce = rig.network("roce")
        port = rig.read_site().hosts[0].nics[1].address
        rig.equip(
            "n-1",
            rig.nic(),
            WantVgpu(profile=PROFILE),
            WantVgpu(profile=PROFILE),
            WantSriov(physical_function=port, network=roce.ref, network_name=roce.name),
        )
        devices = rig.settings("n-1").devices
        assert len({device.key for device in devices}) == 4
        cards = {device.adapter: device for device in devices if isinstance(device, EthernetCard)}
        assert (cards["sriov"].physical_function, cards["sriov"].network) == (port, roce.ref)
        assert cards["vmxnet3"].network == rig.network("vm-mgmt").ref

    def test_a_device_group_comes_with_all_its_devices(self, rig: Rig) -> None:
        roce, group = rig.network("roce"), rig.read_site().hosts[0].groups[0]
        rig.equip("n-1", WantGroup(group=group, network=roce.ref, network_name=roce.name))
        settings = rig.settings("n-1")
        assert [each.name for each in settings.groups] == [group.name]
        assert {device.group for device in settings.devices} == {settings.groups[0].key}
        assert len(settings.devices) == len(group.components)

    def test_devices_can_be_removed(self, rig: Rig) -> None:
        rig.equip("n-1", rig.nic(), WantVgpu(profile=PROFILE))
        card = next(each for each in rig.settings("n-1").devices if isinstance(each, EthernetCard))
        rig.do(AttachDevices(vm="n-1", add=(), remove=(card.key,)))
        assert not [each for each in rig.settings("n-1").devices if isinstance(each, EthernetCard)]

    def test_settings_are_brought_to_the_target(self, rig: Rig) -> None:
        rig.do(rig.clone("n-1"))
        target = replace(rig.target(), cpus=12, memory=gib(96), extra_config={"pciPassthru.64bitMMIOSizeGB": "128"})
        rig.do(SetSettings(vm="n-1", target=target, drift=(SettingDrift("vCPUs", "1", "2"),)))
        vm, settings = rig.vm("n-1"), rig.settings("n-1")
        assert (vm.cpus, vm.memory, settings.memory_reservation) == (12, gib(96), gib(96))
        assert settings.extra_config["pciPassthru.64bitMMIOSizeGB"] == "128"
        assert settings.extra_config[CLUSTER_KEY] == rig.cluster

    def test_a_powered_on_vm_holds_its_gpu_until_it_is_off(self, rig: Rig) -> None:
        rig.equip("n-1", rig.nic(), WantVgpu(profile=PROFILE), host=3)
        rig.do(PowerOn(vm="n-1"))
        assert rig.vm("n-1").powered_on
        assert self._holders(rig) == ["n-1"]
        rig.do(PowerOff(vm="n-1"))
        assert not rig.vm("n-1").powered_on
        assert self._holders(rig) == []

    @staticmethod
    def _holders(rig: Rig) -> list[str]:
        return [use.vm_name for gpu in rig.read_site().hosts[3].gpus for use in gpu.used_by]

    def test_power_on_is_refused_when_no_gpu_is_free(self, rig: Rig) -> None:
        for number in range(5):
            rig.equip(f"n-{number}", WantVgpu(profile=PROFILE), host=3)
        codes = [error.code for error in rig.settle(*(PowerOn(vm=f"n-{n}") for n in range(5))) if error]
        assert codes == ["vsphere.graphics-capacity"]

    def test_a_nic_gets_a_new_mac(self, rig: Rig) -> None:
        rig.equip("n-1", rig.nic())
        (card,) = [each for each in rig.settings("n-1").devices if isinstance(each, EthernetCard)]
        rig.do(NewMac(vm="n-1", key=card.key, mac=card.mac))
        (after,) = [each for each in rig.settings("n-1").devices if isinstance(each, EthernetCard)]
        assert after.mac
        assert after.mac != card.mac

    def test_a_rule_is_read_back_and_can_be_edited_and_deleted(self, rig: Rig) -> None:
        rig.do(*(rig.clone(name) for name in ("n-1", "n-2", "n-3")))
        cluster, name = rig.read_site().clusters[0].ref, f"rule-{rig.cluster}"
        rig.do(MakeRule(cluster=cluster, name=name, vms=("n-1", "n-2")))
        (rule,) = [each for each in rig.read_site().clusters[0].rules if each.name == name]
        assert rule.vms == {rig.vm("n-1").ref, rig.vm("n-2").ref}
        rig.do(MakeRule(cluster=cluster, name=name, vms=("n-1", "n-3"), key=rule.key))
        (rule,) = [each for each in rig.read_site().clusters[0].rules if each.name == name]
        assert rule.vms == {rig.vm("n-1").ref, rig.vm("n-3").ref}
        rig.do(DeleteRule(cluster=cluster, name=name, key=rule.key))
        assert name not in {each.name for each in rig.read_site().clusters[0].rules}

    def test_a_folder_is_made_with_its_parents_and_marked(self, rig: Rig) -> None:
        rig.read_site()
        rig.do(CreateFolder(path=f"{rig.cluster}/deep", marks=Marks(cluster=rig.cluster)))
        marks = {folder.path: folder.cluster_mark for folder in rig.read_site().folders}
        assert marks[rig.cluster] == marks[f"{rig.cluster}/deep"] == rig.cluster
        rig.do(DeleteFolder(path=f"{rig.cluster}/deep"))
        rig.do(DeleteFolder(path=rig.cluster))
        assert rig.cluster not in {folder.path for folder in rig.read_site().folders}

    def test_a_vm_tells_where_it_lies_and_moves_to_another_folder_while_it_runs(self, rig: Rig) -> None:
        rig.equip("n-1", rig.nic())
        rig.do(PowerOn(vm="n-1"))
        site, vm = rig.read_site(), rig.vm("n-1")
        assert vm.pool == site.clusters[0].root_pool
        assert rig.settings("n-1").datastore == next(each.ref for each in site.datastores if each.name == "vsan")
        rig.do(CreateFolder(path=rig.cluster, marks=Marks(cluster=rig.cluster)))
        rig.do(MoveToFolder(vm="n-1", path=rig.cluster, was=""))
        there = next(each.ref for each in rig.read_site().folders if each.path == rig.cluster)
        assert (rig.vm("n-1").folder, rig.vm("n-1").powered_on) == (there, True)
        rig.do(MoveToFolder(vm="n-1", path="", was=rig.cluster))
        rig.do(DeleteFolder(path=rig.cluster))

    def test_a_folder_with_a_vm_in_it_stays(self, rig: Rig) -> None:
        rig.read_site()
        rig.do(CreateFolder(path=rig.cluster, marks=Marks(cluster=rig.cluster)))
        rig.read_site()
        rig.do(rig.clone("n-1", folder=rig.cluster))
        assert rig.refused(DeleteFolder(path=rig.cluster)) == "vsphere.folder-not-empty"
        rig.do(DeleteVm(vm="n-1"))
        rig.do(DeleteFolder(path=rig.cluster))

    def test_a_vm_without_our_mark_is_never_touched(self, rig: Rig) -> None:
        before = rig.vm(FOREIGN)
        marks = Marks(cluster=rig.cluster, node=FOREIGN)
        changes = (PowerOff(vm=FOREIGN), DeleteVm(vm=FOREIGN), MarkVm(vm=FOREIGN, marks=marks))
        assert {rig.refused(change) for change in changes} == {"vsphere.not-ours"}
        assert rig.vm(FOREIGN) == before

    def test_another_clusters_vm_of_the_same_name_is_never_touched(self, rig: Rig, connect: Connect) -> None:
        other = Rig(connect(), f"{rig.cluster}x")
        other.do(other.clone("n-1"))
        rig.read_site()
        assert rig.refused(DeleteVm(vm="n-1")) == "vsphere.not-ours"
        other.sweep()
        other.vcenter.close()

    @pytest.mark.parametrize("kind", [PowerOn, PowerOff, DeleteVm])
    def test_a_vm_that_is_not_there_is_not_found(self, rig: Rig, kind: type[PowerOn | PowerOff | DeleteVm]) -> None:
        rig.read_site()
        assert rig.refused(kind(vm="nobody")) == "vsphere.not-found"

    def test_a_vm_that_runs_is_not_deleted(self, rig: Rig) -> None:
        rig.do(rig.clone("n-1"))
        rig.do(PowerOn(vm="n-1"))
        assert rig.refused(DeleteVm(vm="n-1")) == "vsphere.power-state"

    def test_many_changes_at_once_all_end(self, rig: Rig) -> None:
        names = [f"n-{number:02}" for number in range(12)]
        rig.do(*(rig.clone(name, host=number % 4) for number, name in enumerate(names)))
        assert [vm.name for vm in rig.read_site().vms if vm.cluster_mark == rig.cluster] == names

    def test_one_failure_does_not_touch_the_others(self, rig: Rig) -> None:
        good, bad = rig.clone("n-1"), PowerOn(vm="nobody")
        errors = rig.settle(bad, good)
        assert [error.code if error else None for error in errors] == ["vsphere.not-found", None]

    def test_an_event_changes_nothing(self, rig: Rig) -> None:
        before = rig.read_site()
        rig.vcenter.log_event("changes a cluster")
        assert rig.read_site() == before

    def test_the_lock_excludes_a_second_run_and_names_the_holder(self, rig: Rig, connect: Connect) -> None:
        rig.read_site()
        other = connect()
        other.read_site(Scope(owner=rig.cluster))
        with rig.vcenter.hold(rig.cluster):
            with pytest.raises(NotPossible) as refusal, other.hold(rig.cluster):
                pytest.fail("both hold the lock")
            assert refusal.value.code == "lock.held"
            with other.hold(f"{rig.cluster}-other"):
                pass  # another cluster's lock is another lock
        with other.hold(rig.cluster):
            pass  # free again
        other.close()
