"""A vCenter in memory: it has a state, carries out changes by vSphere's rules, and takes time on a clock of its own."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from tests.fakes.clock import FakeClock
from tests.fakes.devices import Workshop
from tests.fakes.physics import Physics
from vsphere_ml.core.errors import NotPossible, VSphereError
from vsphere_ml.core.model.cpu_times import CpuTimes
from vsphere_ml.core.model.inventory import ContentLibraries, Inventory
from vsphere_ml.core.model.marks import template_name
from vsphere_ml.core.plan.changes import CloneVm, DeployTemplate
from vsphere_ml.core.ports.vcenter import TaskHandle, Update

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from vsphere_ml.core.model.device_counts import Ask, Count, Counts, DirectPathProfile, Place
    from vsphere_ml.core.model.inventory import Host, HostRef, StoragePolicy, Vm
    from vsphere_ml.core.plan.changes import Change
    from vsphere_ml.core.ports.vcenter import Scope

Step: TypeAlias = Callable[[Inventory], Inventory]


class Cut(BaseException):
    """The process was killed: nothing of ours runs any more, not even the release of the lock."""


@dataclass(slots=True)
class _Task:
    task: TaskHandle
    due: float
    steps: list[Step]
    error: VSphereError | None = None
    begun: bool = False


def _bare(host: Host) -> Host:
    return replace(host, pci={}, numa=(), gpus=(), nics=(), profiles=(), groups=())


def _without_storage(vm: Vm) -> Vm:
    return vm if vm.settings is None else replace(vm, settings=replace(vm.settings, storage=None))


def at_once(_change: Change) -> float:
    return 0.0


def never(_change: Change) -> VSphereError | None:
    return None


@dataclass(slots=True)
class FakeVCenter:
    """A site that starts as a picture. `takes` says how long a change lasts, `fails` which are refused and how.

    With `cut_after`, the process that uses it is killed once so many steps were carried out; `mend` lets the next run
    begin. A clone has two steps: the clone itself, and its mark.
    """

    inventory: Inventory
    clock: FakeClock = field(default_factory=FakeClock)
    takes: Callable[[Change], float] = at_once
    fails: Callable[[Change], VSphereError | None] = never
    drops: frozenset[str] = frozenset()
    gpus_from_far: bool = False
    same_macs: bool = False
    boots: bool = True  # guests with first-boot data come up with an address, and publish a host key
    files: dict[str, bytes] = field(default_factory=dict)  # by `[datastore] path`
    downloads: Path = Path("/nowhere")
    vgpu_manager: str = "535.183.04"  # of every host with GPUs
    named_devices: tuple[DirectPathProfile, ...] = ()  # vSphere 9 knows names of devices
    told: dict[tuple[Place, Ask], Count] = field(default_factory=dict)  # a vCenter of vSphere 9 counts itself
    cut_after: int | None = None
    waits: dict[str, CpuTimes] = field(default_factory=dict)  # what VMs' CPUs waited for
    asked_s: list[float] = field(default_factory=list)  # for how long that was asked
    done: list[Change] = field(default_factory=list)
    looks: int = 0
    reads: int = 0
    started: int = 0
    holds: int = 0
    closed: bool = False
    _physics: Physics = field(init=False)
    _tasks: dict[int, _Task] = field(default_factory=dict)
    _locks: set[str] = field(default_factory=set)
    _dead: bool = False
    _tells_storage: bool = False
    steps: int = 0  # carried out so far
    logged: list[str] = field(default_factory=list)  # events

    def __post_init__(self) -> None:
        self._physics = Physics(
            Workshop(self.drops, self.same_macs), gpus_from_far=self.gpus_from_far, boots=self.boots
        )

    def read_site(self, scope: Scope) -> Inventory:
        self._live()
        self.looks += 1
        self._physics.owner = scope.owner

        package = self.inventory.package if scope.ovf else None
        templates = {each.vm for each in (self.inventory.libraries.items if self.inventory.libraries else ())}

        def in_scope(vm: Vm) -> bool:
            if scope.library and vm.ref in templates:
                return True
            if scope.owner is not None and vm.name.startswith(template_name(scope.owner, "")):
                return True
            return vm.name in scope.vms or (scope.owner is not None and vm.cluster_mark == scope.owner)

        vms = tuple(vm if in_scope(vm) else replace(vm, settings=None, snapshot=None) for vm in self.inventory.vms)
        hosts = self.inventory.hosts if scope.devices else tuple(_bare(host) for host in self.inventory.hosts)
        if not scope.groups:
            hosts = tuple(replace(host, groups=()) for host in hosts)
        vms = vms if scope.storage_policy is not None else tuple(map(_without_storage, vms))
        policies = self._policies(scope.storage_policy)
        libraries = self._libraries(scope) if scope.library else None
        return replace(
            self.inventory, hosts=hosts, vms=vms, storage_policies=policies, libraries=libraries, package=package
        )

    def _libraries(self, scope: Scope) -> ContentLibraries:
        """Return the libraries as the port promises: with the items of the one that is asked for."""
        every = self.inventory.libraries or ContentLibraries(names=())
        return every if scope.library in every.names else replace(every, items=())

    def _policies(self, wanted: str | None) -> tuple[StoragePolicy, ...]:
        """Return the storage policies as the port promises: with the datastores of the one that is asked for."""
        self._tells_storage = wanted is not None
        if wanted is None:
            return ()
        every = self.inventory.storage_policies
        return tuple(each if each.name == wanted else replace(each, datastores=frozenset()) for each in every)

    def read(self, vms: Collection[str]) -> tuple[Vm, ...]:
        self._live()
        self.reads += 1
        found = (vm for vm in self.inventory.vms if vm.name in vms and self._physics.is_ours(vm))
        return tuple(vm if self._tells_storage else _without_storage(vm) for vm in found)

    def start(self, changes: Sequence[Change]) -> tuple[TaskHandle, ...]:
        return tuple(self._start(change) for change in changes)

    def _start(self, change: Change) -> TaskHandle:
        self._live()
        self.started += 1
        task = TaskHandle(self.started, change)
        if isinstance(change, CloneVm | DeployTemplate):
            self._physics.owner = change.marks.cluster
        steps = list(self._physics.steps(change))
        self._tasks[task.id] = _Task(task, self.clock.now() + self.takes(change), steps, self.fails(change))
        return task

    def wait(self, tasks: Sequence[TaskHandle], timeout_s: float) -> tuple[Update, ...]:
        """Let time pass until one of these tickets is done, and say so."""
        self._live()
        watched = [self._tasks[running.id] for running in tasks]
        until = min(self.clock.now() + timeout_s, *(task.due for task in watched), float("inf"))
        self.clock.sleep(max(0.0, until - self.clock.now()))
        ripe = [task for task in watched if task.due <= self.clock.now()]
        return tuple(self._finish(task) for task in sorted(ripe, key=lambda task: (task.due, task.task.id)))

    def vgpu_managers(self, hosts: Collection[HostRef]) -> Mapping[HostRef, str]:
        self._live()
        there = {host.ref for host in self.inventory.hosts if host.connected and host.gpus}
        return {ref: self.vgpu_manager for ref in hosts if ref in there and self.vgpu_manager}

    def counts(self, asks: Mapping[Place, Sequence[Ask]]) -> Counts:
        self._live()
        answers = (
            (place, {ask: self.told[place, ask] for ask in each if (place, ask) in self.told})
            for place, each in asks.items()
        )
        return {place: answer for place, answer in answers if answer}

    def direct_path_profiles(self) -> tuple[DirectPathProfile, ...]:
        self._live()
        return self.named_devices

    def cpu_times(self, vms: Collection[str], seconds: float) -> Mapping[str, CpuTimes]:
        self._live()
        self.asked_s.append(seconds)
        on = {vm.name for vm in self.inventory.vms if vm.powered_on}
        return {name: self.waits.get(name, CpuTimes(ready=0.001, costop=0.0001)) for name in vms if name in on}

    def file_size(self, file: str) -> int:
        self._live()
        if file not in self.files:
            raise VSphereError(f"there is no file {file}", code="datastore.no-file", target=file)
        return len(self.files[file])

    def fetch(self, file: str, notify: Callable[[int, int], None]) -> Path:
        size = self.file_size(file)
        here = self.downloads / file.rpartition("/")[2]
        here.write_bytes(self.files[file])
        notify(size, size)
        return here

    @contextmanager
    def hold(self, cluster: str) -> Iterator[None]:
        self._live()
        if cluster in self._locks:
            raise NotPossible(f"somebody else works on {cluster}", code="lock.held", target=cluster)
        self._locks.add(cluster)
        self.holds += 1
        try:
            yield
        finally:
            if not self._dead:
                self._locks.discard(cluster)

    def log_event(self, message: str) -> None:
        self.logged.append(message)

    @property
    def locked(self) -> bool:
        return bool(self._locks)

    def close(self) -> None:
        self.closed = True

    def mend(self, *, finish: bool = True) -> None:
        """Let the next run begin. Tasks that ran when the last one was killed went on in vCenter, or were lost."""
        self._dead, self.cut_after = False, None
        self._locks.clear()  # their holder is dead
        tasks, self._tasks = self._tasks, {}
        for task in tasks.values() if finish else ():
            if task.error is None and not task.begun:
                self._advance(task)

    def mend_drops(self) -> None:
        """Drop nothing from now on."""
        self._physics.workshop.drops = frozenset()

    def _live(self) -> None:
        if self._dead:
            raise Cut

    def _finish(self, task: _Task) -> Update:
        while task.error is None and task.steps:
            self._advance(task)
            self.steps += 1
            if self.cut_after is not None and self.steps >= self.cut_after:
                self._dead = True
                raise Cut
        del self._tasks[task.task.id]
        if task.error is None:
            self.done.append(task.task.change)
        return Update(task=task.task, done=True, error=task.error)

    def _advance(self, task: _Task) -> None:
        task.begun = True
        try:
            self.inventory = task.steps.pop(0)(self.inventory)
        except VSphereError as error:
            task.error = error
