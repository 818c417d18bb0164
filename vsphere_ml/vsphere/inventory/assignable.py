"""Asks hosts what is in no property: device groups, what profiles are, system ids, hardware versions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from pyVmomi import vim, vmodl

from vsphere_ml.core.model.inventory import (
    ComponentKind,
    DeviceGroup,
    GroupComponent,
    HostRef,
    Pvrdma,
    Sharing,
    VgpuProfile,
)
from vsphere_ml.core.units import gib
from vsphere_ml.vsphere.esxi import modules, pvrdma
from vsphere_ml.vsphere.faults import AWAY, words
from vsphere_ml.vsphere.inventory import vibs
from vsphere_ml.vsphere.inventory.collect import collect_objects, reference
from vsphere_ml.vsphere.inventory.gpus import is_gpu
from vsphere_ml.vsphere.inventory.hosts import Extra
from vsphere_ml.vsphere.inventory.nics import is_port
from vsphere_ml.vsphere.inventory.pci import address, functions, unsigned_id
from vsphere_ml.vsphere.inventory.vms import hardware_version

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from vsphere_ml.core.model.inventory import PciAddress
    from vsphere_ml.vsphere.connection.session import Session

Machines = Mapping[HostRef, tuple[Any, Mapping[str, Any]]]  # a host's object and properties
_AT_ONCE = 8
# So many hosts that keep vCenter waiting are no longer the hosts' fault.
_MOST_TIMEOUTS = 8
# A host without the feature says so by one of these.
_ABSENT = (vmodl.fault.NotSupported, vmodl.fault.MethodNotFound, vmodl.fault.ManagedObjectNotFound)
T = TypeVar("T")


class Assignable:
    """The answers of the hosts' managers, asked side by side."""

    def __init__(self, session: Session, newest: dict[str, dict[HostRef, int]]) -> None:
        self._session = session
        self._newest = newest  # virtual hardware of each host, by environment browser: what was asked before
        self.components: dict[str, list[Any]] = {}  # a device group's devices, as vCenter describes them
        self._groups: dict[HostRef, tuple[DeviceGroup, ...]] = {}
        self._profiles: dict[str, VgpuProfile] = {}
        self._system_ids: dict[HostRef, dict[PciAddress, str]] = {}
        self._pvrdma: dict[HostRef, Pvrdma] = {}
        self._modules: dict[HostRef, tuple[tuple[str, str], ...] | None] = {}
        self._managers: Mapping[HostRef, str | None] = {}
        self._most_vgpus: dict[HostRef, int | None] = {}
        self._no_answer: dict[HostRef, str] = {}

    def ask(self, machines: Machines, *, groups: bool) -> None:
        """Ask these hosts what their properties leave open, for their device groups only where these matter."""
        if groups and self._session.speaks("8.0.0.1"):
            self._groups = self._each("device groups", self._device_groups, machines)
        if self._session.speaks("7.0.3.0"):
            self._ask_for_profiles(machines)
        passing = {ref: machine for ref, machine in machines.items() if _passes_functions(machine[1])}
        self._system_ids = self._each("PCI devices", self._systems, passing)

    def ask_for_pvrdma(self, machines: Machines) -> None:
        """Ask these hosts what they do PVRDMA with."""
        self._pvrdma = self._each("PVRDMA", lambda _host, props: pvrdma.pvrdma(props), machines)

    def ask_for_modules(self, machines: Machines) -> None:
        """Ask these hosts for the options of their NICs' drivers."""
        self._modules = self._each("driver options", _modules, machines)

    def ask_for_managers(self, hosts: Sequence[HostRef]) -> None:
        """Ask these hosts for their vGPU managers."""
        self._managers = vibs.read_vgpu_managers(self._session, hosts)

    def ask_for_most_vgpus(self, machines: Machines) -> None:
        """Ask these hosts how many vGPUs one VM may have."""
        self._most_vgpus = self._each("virtual hardware", self._instances, machines)

    def _ask_for_profiles(self, machines: Machines) -> None:
        """Ask one host of all those that offer the same profiles, and another when that one does not answer."""
        alike: dict[tuple[str, ...], list[HostRef]] = defaultdict(list)
        for ref, (_, props) in machines.items():
            alike[tuple(props.get("config.sharedPassthruGpuTypes") or ())].append(ref)
        alike.pop((), None)
        while alike:
            asked = {refs[0]: machines[refs[0]] for refs in alike.values()}
            answers = self._each("vGPU profiles", self._profile_infos, asked)
            for found in answers.values():
                self._profiles.update(found)
            alike = {candidate: refs[1:] for candidate, refs in alike.items() if refs[0] not in answers and refs[1:]}

    def _each(self, what: str, ask: Callable[[Any, Mapping[str, Any]], T], machines: Machines) -> dict[HostRef, T]:
        """Return what each host answers; one that does not is noted, and costs the others nothing."""
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            answers = pool.map(lambda ref: self._answer(ref, what, lambda: ask(*machines[ref])), machines)
            return {ref: answer[0] for ref, answer in zip(machines, answers, strict=True) if answer}

    def _answer(self, ref: HostRef, what: str, ask: Callable[[], T]) -> tuple[T] | None:
        """Return a host's answer; None when it gives none, also when it is asked twice."""
        try:
            try:
                return (ask(),)
            except TimeoutError:
                return (ask(),)
        except AWAY as fault:
            self._no_answer.setdefault(ref, f"asked for its {what}, vCenter says: {words(fault)}")
        except TimeoutError:
            self._no_answer.setdefault(ref, f"asked for its {what}, vCenter waits for it in vain")
            if len(self._no_answer) > _MOST_TIMEOUTS:
                raise
        return None

    def hardware(self, clusters: Iterable[Mapping[str, Any]]) -> None:
        """Ask clusters, by their properties, for the newest virtual hardware of each of their hosts."""
        for browser in [props["environmentBrowser"] for props in clusters if props.get("environmentBrowser")]:
            if reference(browser) not in self._newest:
                self._newest[reference(browser)] = _newest_by(browser)

    def learnt(self, ref: HostRef, props: Mapping[str, Any]) -> Extra:
        """Return what was learnt of a host."""
        offered = props.get("config.sharedPassthruGpuTypes") or ()
        return Extra(
            profiles=tuple(self._profiles.get(name) or VgpuProfile(name=name) for name in sorted(offered)),
            groups=self._groups.get(ref, ()),
            system_ids=self._system_ids.get(ref, {}),
            pvrdma=self._pvrdma.get(ref),
            module_options=self._modules.get(ref),
            most_vgpus=self._most_vgpus.get(ref),
            vgpu_manager=self._managers.get(ref),
            newest_hardware=max((hosts[ref] for hosts in self._newest.values() if ref in hosts), default=None),
            no_answer=self._no_answer.get(ref, ""),
        )

    def _device_groups(self, _host: Any, props: Mapping[str, Any]) -> tuple[DeviceGroup, ...]:
        manager = props.get("configManager.assignableHardwareManager")
        infos = _or_none(manager.RetrieveVendorDeviceGroupInfo) if manager else None
        for info in infos or ():
            self.components.setdefault(info.deviceGroupName, [each.device for each in info.componentDeviceInfo or ()])
        return tuple(sorted(map(_group, infos or ()), key=lambda group: group.name))

    def _profile_infos(self, _host: Any, props: Mapping[str, Any]) -> dict[str, VgpuProfile]:
        manager = props.get("configManager.graphicsManager")
        infos = _or_none(manager.RetrieveVgpuProfileInfo) if manager else None
        return {info.profileName: _profile(info) for info in infos or ()}

    def _browser(self, props: Mapping[str, Any]) -> Any:
        browsers = collect_objects(self._session, [props["parent"]], {vim.ComputeResource: ["environmentBrowser"]})
        return next((found.get("environmentBrowser") for _, found in browsers), None)

    def _instances(self, host: Any, props: Mapping[str, Any]) -> int | None:
        """Return the most vGPUs that the host's newest virtual hardware lets a VM have of its least generous type."""
        browser = self._browser(props)
        # One guest system's row is asked for: those of all of them are most of a long answer.
        query = vim.EnvironmentBrowser.ConfigOptionQuerySpec(host=host, guestId=["otherGuest64"])
        option = browser.QueryConfigOptionEx(query) if browser else None
        devices = option.hardwareOptions.virtualDeviceOption if option else None
        return min((each.maxInstances for each in _vgpu_options(devices or ()) if each.maxInstances), default=None)

    def _systems(self, host: Any, props: Mapping[str, Any]) -> dict[PciAddress, str]:
        browser = self._browser(props)
        target = browser.QueryConfigTarget(host) if browser else None
        devices = (*(target.pciPassthrough or ()), *(target.sriov or ())) if target else ()
        return {address(each.pciDevice.id): each.systemId for each in devices}


def _newest_by(browser: Any) -> dict[HostRef, int]:
    newest: dict[HostRef, int] = {}
    with suppress(*AWAY):  # it follows from the release then
        for option in browser.QueryConfigOptionDescriptor() or ():
            for each in option.host or ():
                ref = HostRef(reference(each))
                newest[ref] = max(newest.get(ref, 0), hardware_version(option.key))
    return newest


def _vgpu_options(devices: Iterable[Any]) -> Iterator[Any]:
    for device in devices:
        if isinstance(device, vim.vm.device.VirtualPCIPassthroughOption):
            for backing in device.backingOption or ():
                if isinstance(backing, vim.vm.device.VirtualPCIPassthroughOption.VmiopBackingOption):
                    yield backing


def _passes_functions(props: Mapping[str, Any]) -> bool:
    # Virtual functions are active for passthrough too, but need no system id of their own.
    active = {address(info.id) for info in props.get("config.pciPassthruInfo") or () if info.passthruActive}
    return any(each.address in active and (is_port(each) or is_gpu(each)) for each in functions(props).values())


def _modules(_host: Any, props: Mapping[str, Any]) -> tuple[tuple[str, str], ...] | None:
    found = modules.options(props.get(modules.PATH))
    return tuple(found.items()) if found is not None else None


def _or_none(call: Callable[[], T]) -> T | None:
    try:
        return call()
    except _ABSENT:
        return None


def _group(info: Any) -> DeviceGroup:
    return DeviceGroup(name=info.deviceGroupName, components=tuple(map(_component, info.componentDeviceInfo or ())))


def _component(info: Any) -> GroupComponent:
    backing = getattr(info.device, "backing", None)
    allowed = next(iter(getattr(backing, "allowedDevice", None) or ()), None)
    return GroupComponent(
        kind=ComponentKind(info.type),
        device_name=info.deviceName or "",
        profile=getattr(backing, "vgpu", None) or None,
        vendor=unsigned_id(allowed.vendorId) if allowed else None,
        device=unsigned_id(allowed.deviceId) if allowed else None,
    )


def _profile(info: Any) -> VgpuProfile:
    sharing = info.profileSharing
    return VgpuProfile(
        name=info.profileName,
        framebuffer=gib(info.fbSizeInGib) if info.fbSizeInGib else None,
        sharing=Sharing(sharing) if sharing else None,
    )
