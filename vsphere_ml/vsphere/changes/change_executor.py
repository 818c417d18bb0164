"""What each change does at a vCenter, step by step. A step yields what must end before the next begins."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, assert_never

from pyVmomi import vim

from vsphere_ml.core.errors import VSphereError
from vsphere_ml.core.model.inventory import VmRef
from vsphere_ml.core.model.marks import CLUSTER_KEY, NODE_KEY, deployment_note
from vsphere_ml.core.plan.changes import (
    STORAGE_POLICY,
    AttachDevices,
    CloneVm,
    CreateFolder,
    CustomizeGuest,
    DeleteFolder,
    DeleteRule,
    DeleteVm,
    DeployTemplate,
    MakeRule,
    MarkVm,
    MoveToFolder,
    MoveToPool,
    NewMac,
    PowerOff,
    PowerOn,
    SetSettings,
    SetSwitchMtu,
    UpgradeHardware,
)
from vsphere_ml.vsphere.changes import customization, deployment, specs
from vsphere_ml.vsphere.changes.task_runner import DONE, AwaitedState, StepProgress
from vsphere_ml.vsphere.connection.required import require_result
from vsphere_ml.vsphere.connection.session import InterruptedWriteError
from vsphere_ml.vsphere.inventory.collect import collect_objects, managed_object, reference
from vsphere_ml.vsphere.inventory.custom_attributes import not_ours

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from vsphere_ml.core.plan.changes import Change
    from vsphere_ml.vsphere.changes.site import Site
    from vsphere_ml.vsphere.connection.session import Session
    from vsphere_ml.vsphere.inventory.custom_attributes import CustomAttributes

    Steps = Generator[AwaitedState | StepProgress, Any, None]

SHUTDOWN_S = 120.0
_RUNNING = "guestToolsRunning"
_ON, _OFF = "poweredOn", "poweredOff"


class ChangeExecutor:
    """The changes as steps over one site."""

    def __init__(self, session: Session, fields: CustomAttributes, site: Site) -> None:
        self._session, self._fields, self.site = session, fields, site

    def steps(self, change: Change) -> Steps:  # noqa: C901, PLR0911, PLR0912 - one line a change
        """Return the steps of a change; nothing happens before the first is taken."""
        match change:
            case CreateFolder():
                return self._create_folder(change)
            case DeployTemplate():
                return self._deploy(change)
            case CloneVm():
                return self._clone(change)
            case MarkVm():
                return self._mark(change)
            case MoveToFolder():
                return self._move_to_folder(change)
            case MoveToPool():
                return self._move_to_pool(change)
            case UpgradeHardware():
                return self._upgrade(change)
            case SetSettings():
                return self._set(change)
            case AttachDevices():
                return self._attach(change)
            case NewMac():
                return self._new_mac(change)
            case CustomizeGuest():
                return self._customize(change)
            case MakeRule():
                return self._make_rule(change)
            case SetSwitchMtu():
                return self._set_mtu(change)
            case PowerOn():
                return self._power_on(change)
            case PowerOff():
                return self._power_off(change)
            case DeleteVm():
                return self._delete_vm(change)
            case DeleteRule():
                return self._delete_rule(change)
            case DeleteFolder():
                return self._delete_folder(change)
            case _:
                assert_never(change)

    def _do(self, call: Callable[[], Any]) -> AwaitedState:
        """Start a task."""
        return AwaitedState(self._session.write(call))

    def _create_folder(self, change: CreateFolder) -> Steps:
        above, path = self.site.folder(""), ""
        for name in change.path.strip("/").split("/"):
            path = f"{path}/{name}".lstrip("/")
            if path not in self.site.folders:
                self.site.folders[path] = (self._new_folder(above, name, change), change.marks.cluster)
            above = self.site.folders[path][0]
        yield from ()

    def _new_folder(self, above: Any, name: str, change: CreateFolder) -> Any:
        try:
            made = self._session.write(lambda: above.CreateFolder(name))
        except InterruptedWriteError:
            # It was not there at the look, and the cluster's lock is held: one that is there now is what we made.
            made = self._child(above, name) or self._session.write(lambda: above.CreateFolder(name))
        self._mark_as_ours(made, change.marks.cluster)
        return made

    def _child(self, folder: Any, name: str) -> Any | None:
        """Return what bears a name in a folder."""
        inside = self._read(folder, "childEntity").get("childEntity") or ()
        rows = self._session.read(lambda: list(collect_objects(self._session, inside, {vim.Folder: ["name"]})))
        return next((found for found, props in rows if props.get("name") == name), None)

    def _mark_as_ours(self, found: Any, cluster: str) -> None:
        self._session.read(lambda: self._fields.mark(found, cluster))  # twice is as once

    def _deploy(self, change: DeployTemplate) -> Steps:
        if change.name in self.site.vms:  # what a cut run has left; a finished template would not be deployed again
            yield from self._delete_vm(DeleteVm(vm=change.name))
        make = deployment.deploy_item if change.package.item else deployment.import_package
        made = yield from make(self._session, self.site, change)
        self._mark_as_ours(made, change.marks.cluster)
        self._session.write(made.MarkAsTemplate)

    def _clone(self, change: CloneVm) -> Steps:
        source = managed_object(self._session, "vim.VirtualMachine", change.source)
        devices = self._source_devices(change, source)
        first_boot = change.first_boot.keys if change.first_boot else {}
        config = specs.settings(change.target, {**first_boot, **specs.marked_config(change.target, change.marks)})
        config.deviceChange = specs.detach_devices(specs.replaceable_devices(devices))
        if change.devices:
            specs.Additions(self.site).want(change.target.devices).into(config)
        snapshot = managed_object(self._session, "vim.vm.Snapshot", change.snapshot) if change.snapshot else None
        spec = specs.clone(self._place(change), config, snapshot)
        specs.with_policy(spec.location, devices, change.target.storage_policy)
        folder = self.site.folder(change.folder)
        try:
            made = yield self._do(lambda: source.CloneVM_Task(folder=folder, name=change.vm, spec=spec))
        except vim.fault.DuplicateName as taken:
            made = self._begun_earlier(change, taken.object)
            if made is None:
                raise
        self.site.adopt(change.vm, require_result(made, source, "CloneVM_Task"), change.host)
        # Not in the clone's own spec: an edited disk there names the source's file, and would be that file.
        if specs.grown_disk(devices, change.target.disk):
            growth: Any = vim.vm.ConfigSpec(deviceChange=specs.grown_disk(self._devices(made), change.target.disk))
            yield self._do(lambda: made.ReconfigVM_Task(spec=growth))
        if change.first_boot and (metadata := specs.metadata(change.first_boot, self._devices(made))) is not None:
            yield self._do(lambda: made.ReconfigVM_Task(spec=metadata))
        yield DONE  # the clone carries our mark in its extra config, so that its attribute keeps nobody waiting
        self._mark_as_ours(made, change.marks.cluster)

    def _begun_earlier(self, change: CloneVm, found: Any) -> Any:
        """Return the clone that a cut run of ours began and vCenter has finished since the look; None for other VMs.

        What may be missing of today's target is found when it is read back before its power-on.
        """
        if not isinstance(found, vim.VirtualMachine) or change.vm in self.site.vms:
            return None
        seen = self._read(found, "config.extraConfig", "runtime.host")
        if "config.extraConfig" not in seen:
            raise VSphereError(
                f"`{change.vm}` is there and has no configuration yet: a clone of that name is still at work",
                code="vsphere.busy",
                target=change.vm,
                hint="see vCenter's recent tasks; when the clone has ended, run the same command again",
            )
        keys, host = _keys(seen), seen.get("runtime.host")
        ours = (keys.get(CLUSTER_KEY), keys.get(NODE_KEY)) == (change.marks.cluster, change.marks.node)
        return found if ours and host is not None and reference(host) == change.host else None

    def _place(self, change: CloneVm) -> Any:
        made: Any = vim.vm.RelocateSpec
        return made(
            datastore=managed_object(self._session, "vim.Datastore", change.datastore),
            host=managed_object(self._session, "vim.HostSystem", change.host),
            pool=managed_object(self._session, "vim.ResourcePool", change.pool),
        )

    def _source_devices(self, change: CloneVm, source: Any) -> list[Any]:
        if change.source not in self.site.devices:
            self.site.devices[change.source] = self._devices(source)
        return self.site.devices[change.source]

    def _devices(self, vm: Any) -> list[Any]:
        return list(self._read(vm, "config.hardware.device").get("config.hardware.device") or ())

    def _read(self, found: Any, *paths: str) -> dict[str, Any]:
        kind = type(found)
        rows = self._session.read(lambda: list(collect_objects(self._session, [found], {kind: paths})))
        if not rows:
            raise VSphereError(f"{reference(found)} is gone", code="vsphere.not-found", target=reference(found))
        return rows[0][1]

    def _mark(self, change: MarkVm) -> Steps:
        vm = self.site.vm(change.vm)
        keys = _keys(self._read(vm, "config.extraConfig"))
        if (keys.get(CLUSTER_KEY), keys.get(NODE_KEY)) != (change.marks.cluster, change.marks.node):
            raise not_ours(change.vm)
        self._mark_as_ours(vm, change.marks.cluster)
        yield from ()

    def _move_to_folder(self, change: MoveToFolder) -> Steps:
        vm, folder = self.site.vm(change.vm), self.site.folder(change.path)
        yield self._do(lambda: folder.MoveIntoFolder_Task(list=[vm]))

    def _move_to_pool(self, change: MoveToPool) -> Steps:
        vm, pool = self.site.vm(change.vm), managed_object(self._session, "vim.ResourcePool", change.pool)
        self._session.write(lambda: pool.MoveIntoResourcePool(list=[vm]))  # has no task
        yield from ()

    def _upgrade(self, change: UpgradeHardware) -> Steps:
        vm = self.site.vm(change.vm)
        try:
            yield self._do(lambda: vm.UpgradeVM_Task(version=f"vmx-{change.version}"))
        except vim.fault.AlreadyUpgraded:
            return

    def _set(self, change: SetSettings) -> Steps:
        vm = self.site.vm(change.vm)
        spec = specs.settings(change.target, change.target.extra_config)
        policy = change.target.storage_policy if change.changes(STORAGE_POLICY) else None
        if change.target.disk is not None or policy is not None:
            spec.deviceChange = specs.edited_disks(self._devices(vm), change.target.disk, policy)
        if policy is not None:
            spec.vmProfile = specs.profile(policy)
        yield self._do(lambda: vm.ReconfigVM_Task(spec=spec))

    def _attach(self, change: AttachDevices) -> Steps:
        vm = self.site.vm(change.vm)
        made: Any = vim.vm.ConfigSpec
        spec = made(deviceChange=[])
        if change.remove:
            leaving = [each for each in self._devices(vm) if each.key in change.remove]
            spec.deviceChange = specs.detach_devices(leaving)
        specs.Additions(self.site).want(change.add).into(spec)
        if spec.deviceChange:
            yield self._do(lambda: vm.ReconfigVM_Task(spec=spec))

    def _new_mac(self, change: NewMac) -> Steps:
        vm = self.site.vm(change.vm)
        card = next((each for each in self._devices(vm) if each.key == change.key), None)
        if card is None:
            raise VSphereError(f"`{change.vm}` has no such NIC any more", code="vsphere.not-found", target=change.vm)
        yield self._do(lambda: vm.ReconfigVM_Task(spec=specs.new_mac(card)))

    def _customize(self, change: CustomizeGuest) -> Steps:
        vm, answers = self.site.vm(change.vm), change.customization
        spec = customization.spec(answers, self._devices(vm), customization.find_specification(self._session, answers))
        with suppress(vim.fault.CustomizationPending):  # a run was cut before it noted that
            yield self._do(lambda: vm.CustomizeVM_Task(spec=spec))
        yield self._do(lambda: vm.ReconfigVM_Task(spec=customization.note(answers)))

    def _make_rule(self, change: MakeRule) -> Steps:
        vms = [self.site.vm(name) for name in change.vms]
        spec = specs.anti_affinity(change.name, vms, change.key)
        cluster = managed_object(self._session, "vim.ClusterComputeResource", change.cluster)
        yield self._do(lambda: cluster.ReconfigureComputeResource_Task(spec=spec, modify=True))

    def _set_mtu(self, change: SetSwitchMtu) -> Steps:
        switch = self.site.switch(change.switch, change.name)
        # A switch that somebody has changed since is refused by its version; only its MTU is in the spec.
        config = self._read(switch, "config")["config"]
        made: Any = vim.dvs.VmwareDistributedVirtualSwitch.ConfigSpec
        if config.maxMtu < change.mtu:
            spec = made(configVersion=config.configVersion, maxMtu=change.mtu)
            yield self._do(lambda: switch.ReconfigureDvs_Task(spec=spec))

    def _delete_rule(self, change: DeleteRule) -> Steps:
        if self.site.rules.get(change.key) != change.name:
            raise VSphereError(
                f"rule {change.key} is not `{change.name}` any more",
                code="vsphere.not-found",
                target=change.name,
                hint="run the command again: it looks first",
            )
        cluster = managed_object(self._session, "vim.ClusterComputeResource", change.cluster)
        spec = specs.no_rule(change.key)
        yield self._do(lambda: cluster.ReconfigureComputeResource_Task(spec=spec, modify=True))

    def _power_on(self, change: PowerOn) -> Steps:
        vm = self.site.vm(change.vm)
        # The host is named so that DRS does not move the VM away from the placement its devices were chosen for.
        placement = self.site.hosts.get(change.vm)
        host = managed_object(self._session, "vim.HostSystem", placement) if placement else None
        try:
            yield self._do(lambda: vm.PowerOnVM_Task(host=host))
        except vim.fault.InvalidPowerState as fault:
            if str(fault.existingState) != _ON:
                raise

    def _power_off(self, change: PowerOff) -> Steps:
        vm = self.site.vm(change.vm)
        state = self._read(vm, "runtime.powerState", "guest.toolsRunningStatus")
        if str(state.get("runtime.powerState")) == _OFF:
            return
        if state.get("guest.toolsRunningStatus") == _RUNNING and (yield from self._shut_down(vm)):
            return
        try:
            yield self._do(vm.PowerOffVM_Task)
        except vim.fault.InvalidPowerState as fault:
            if str(fault.existingState) != _OFF:
                raise

    def _shut_down(self, vm: Any) -> Generator[AwaitedState, Any, bool]:
        """Shut the guest down; false when it will not, or not in time."""
        try:
            self._session.write(vm.ShutdownGuest)
        except vim.fault.VimFault:
            return False
        done = yield AwaitedState(vm, ("runtime.powerState",), (_OFF,), time.monotonic() + SHUTDOWN_S)
        return bool(done)

    def _delete_vm(self, change: DeleteVm) -> Steps:
        vm = self.site.vm(change.vm)
        # Asked once more at the last moment: what is deleted does not come back.
        seen = self._read(vm, "customValue", "config.extraConfig", "config.annotation")
        mark, owner = self._fields.owner(seen.get("customValue")), self.site.owner
        noted = owner is not None and seen.get("config.annotation") == deployment_note(owner, change.vm)
        if owner is None or owner != (mark or _keys(seen).get(CLUSTER_KEY) or (owner if noted else None)):
            raise not_ours(change.vm)
        yield self._do(vm.Destroy_Task)
        self.site.forget(change.vm, VmRef(reference(vm)))

    def _delete_folder(self, change: DeleteFolder) -> Steps:
        folder = self.site.folder(change.path)
        seen = self._read(folder, "childEntity", "customValue")
        mark = self._fields.owner(seen.get("customValue"))
        if not change.path or mark is None or mark != self.site.owner:
            raise not_ours(change.path)
        if seen.get("childEntity"):
            raise VSphereError(
                f"folder `{change.path}` is not empty, so it stays",
                code="vsphere.folder-not-empty",
                target=change.path,
                hint="move or delete what is in it",
            )
        yield self._do(folder.Destroy_Task)
        del self.site.folders[change.path]


def _keys(props: dict[str, Any]) -> dict[str, str]:
    return {each.key: str(each.value) for each in props.get("config.extraConfig") or ()}
