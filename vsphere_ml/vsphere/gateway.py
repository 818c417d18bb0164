"""The vCenter port, over pyVmomi."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pyVmomi import vim, vmodl

from vsphere_ml.core.errors import VsmlError
from vsphere_ml.core.plan.describe import TEXTS
from vsphere_ml.vsphere.changes.change_executor import ChangeExecutor
from vsphere_ml.vsphere.changes.datastore import Files
from vsphere_ml.vsphere.changes.lock import Lock
from vsphere_ml.vsphere.changes.site import Site
from vsphere_ml.vsphere.changes.task_runner import TaskRunner
from vsphere_ml.vsphere.connection.endpoint import BROKEN
from vsphere_ml.vsphere.faults import translate
from vsphere_ml.vsphere.inventory.custom_attributes import CustomAttributes
from vsphere_ml.vsphere.inventory.directpath import counts, direct_path_profiles
from vsphere_ml.vsphere.inventory.read_inventory import LastingFacts, read, read_site
from vsphere_ml.vsphere.inventory.vibs import vgpu_managers

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from vsphere_ml.core.model.cpu_times import CpuTimes
    from vsphere_ml.core.model.device_counts import Ask, Counts, DirectPathProfile, Place
    from vsphere_ml.core.model.inventory import HostRef, Inventory, Vm
    from vsphere_ml.core.plan.changes import Change
    from vsphere_ml.core.ports.vcenter import Scope, TaskHandle, Update
    from vsphere_ml.vsphere.changes.change_executor import Steps
    from vsphere_ml.vsphere.connection.session import Session

T = TypeVar("T")


class Gateway:
    """A vCenter: looked at, changed, locked. One thread uses it at a time."""

    def __init__(self, session: Session, cache: Path | None = None) -> None:
        self._session = session
        self._cache = cache or Path(tempfile.gettempdir())
        self._fields = CustomAttributes(session)
        self._lasting = LastingFacts()
        self._executor = ChangeExecutor(session, self._fields, Site())
        self._tasks = TaskRunner(session, self._explain)
        self._lock: Lock | None = None

    def read_site(self, scope: Scope) -> Inventory:
        """Read the site; names in changes mean from now on what was seen. VMs are ours by `scope.owner`'s mark."""
        self._tasks.finish()
        inventory, site = self._reading(
            lambda: read_site(self._session, self._fields, scope, self._lasting), "looking at the site"
        )
        self._executor.site = site
        return inventory

    def read(self, vms: Collection[str]) -> tuple[Vm, ...]:
        """Read VMs of ours in full, and nothing else."""
        objects = [self._executor.site.vms[name] for name in vms if name in self._executor.site.vms]
        return self._reading(
            lambda: read(self._session, self._fields, objects, self._executor.site.policies), "reading VMs back"
        )

    def vgpu_managers(self, hosts: Collection[HostRef]) -> Mapping[HostRef, str]:
        """Ask the hosts for their packages, several at once."""
        return vgpu_managers(self._session, hosts)

    def counts(self, asks: Mapping[Place, Sequence[Ask]]) -> Counts:
        """Ask vCenter, about several hosts and clusters at once."""
        return counts(self._session, asks)

    def direct_path_profiles(self) -> tuple[DirectPathProfile, ...]:
        return direct_path_profiles(self._session)

    def cpu_times(self, vms: Collection[str], seconds: float) -> Mapping[str, CpuTimes]:
        from vsphere_ml.vsphere.inventory.cpu_times import cpu_times  # noqa: PLC0415 - and `statistics`: few runs ask

        objects = {name: self._executor.site.vms[name] for name in vms if name in self._executor.site.vms}
        return self._reading(lambda: cpu_times(self._session, objects, seconds), "reading performance counters")

    def file_size(self, file: str) -> int:
        return self._reading(lambda: self._files().size(file), f"looking for {file}")

    def fetch(self, file: str, notify: Callable[[int, int], None]) -> Path:
        return self._reading(lambda: self._files().fetch(file, notify), f"fetching {file}")

    def _files(self) -> Files:
        return Files(self._session, self._executor.site.datacenter, self._cache)

    def _reading(self, call: Callable[[], T], action: str) -> T:
        try:
            return self._session.read(call)
        except (vmodl.MethodFault, vim.fault.VimFault) as fault:
            raise translate(fault, self._session.name, action) from fault

    def start(self, changes: Sequence[Change]) -> tuple[TaskHandle, ...]:
        """Begin these changes; whatever fails is reported by `wait`."""
        return tuple(self._tasks.start(change, self._guarded(change)) for change in changes)

    def _guarded(self, change: Change) -> Steps:
        if self._lock is not None:
            self._lock.assert_held()
        yield from self._executor.steps(change)

    def wait(self, tasks: Sequence[TaskHandle], timeout_s: float) -> tuple[Update, ...]:
        return self._tasks.wait(tasks, timeout_s)

    def _explain(self, fault: BaseException, change: Change) -> VsmlError:
        if isinstance(fault, VsmlError):
            return fault
        action = TEXTS[type(change)].doing.format(change)
        target = getattr(change, "vm", None) or getattr(change, "path", None) or getattr(change, "name", "")
        return translate(fault, str(target), action, self._executor.site.names)

    @contextmanager
    def hold(self, cluster: str) -> Iterator[None]:
        """Hold the cluster's lock; NotPossible `lock.held` when somebody else has it."""
        lock = Lock(self._session, self._fields, self._executor.site.vm_folder, cluster)
        try:
            lock.take()
        except vmodl.MethodFault as fault:
            raise translate(fault, cluster, "taking the cluster's lock") from fault
        self._lock = lock
        try:
            yield
            self._tasks.finish()
        finally:
            self._lock = None
            lock.release()

    def log_event(self, message: str) -> None:
        """Write a user event of the data centre's VM folder. Never raises: events are for people alone."""
        folder = self._executor.site.vm_folder or self._session.content.rootFolder
        with suppress(vmodl.MethodFault, VsmlError, *BROKEN):
            self._session.read(lambda: self._session.content.eventManager.LogUserEvent(entity=folder, msg=message))

    def close(self) -> None:
        self._tasks.close()
        self._session.close()
