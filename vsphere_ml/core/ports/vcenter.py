"""The protocols between flows and edges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from vsphere_ml.core.errors import VsmlError
    from vsphere_ml.core.model.cpu_times import CpuTimes
    from vsphere_ml.core.model.device_counts import Ask, Counts, DirectPathProfile, Place
    from vsphere_ml.core.model.guest import Shell
    from vsphere_ml.core.model.inventory import HostRef, Inventory, Vm
    from vsphere_ml.core.plan.changes import Change

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """How much of a site a look needs.

    Every VM and host is read leanly. Devices are read for the hosts of `cluster` (of all when None) that offer vGPUs,
    or with `direct_path` for all of them, since GPUs handed through whole do not show in the lean read; with `groups`
    also their device groups, with `pvrdma` what they do PVRDMA with, with `roce` the options of their NICs' drivers,
    with `vgpus` how many vGPUs one VM may have. Settings are read in full for VMs that carry the mark `owner` or have
    one of the names in `vms`, the free ports of the port groups `port_groups`. With `customizations` the names of
    vCenter's customization specifications are read, with `tasks` the tasks that it is at work on, with `storage_policy`
    the storage policies: which there are, which datastores satisfy the one of that name, and which VMs of `owner` have,
    with `library` the content libraries and the items of the one of that name; the VM template that its item `item` is
    is read in full. `ovf` is an OVF or OVA file of this machine, whose description is read.
    """

    datacenter: str | None = None
    cluster: str | None = None
    owner: str | None = None
    vms: frozenset[str] = frozenset()
    devices: bool = True
    direct_path: bool = False
    groups: bool = True
    pvrdma: bool = False
    roce: bool = False
    vgpus: bool = False
    port_groups: frozenset[str] = frozenset()
    customizations: bool = False
    tasks: bool = False
    storage_policy: str | None = None
    library: str = ""
    item: str = ""
    ovf: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class TaskHandle:
    """A change that was started. Two tickets are never equal."""

    id: int
    change: Change


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """News of a ticket: queued in vCenter, running (percent when known), or done, with the error when it failed."""

    task: TaskHandle
    done: bool
    queued: bool = False
    percent: int | None = None
    error: VsmlError | None = None


class VCenter(Protocol):
    """A vCenter. One thread uses it at a time."""

    def read_site(self, scope: Scope) -> Inventory:
        """Read the site. Raises VSphereError."""
        ...

    def read(self, vms: Collection[str]) -> tuple[Vm, ...]:
        """Return these VMs of ours as they are now, settings in full; one that is gone is left out."""
        ...

    def start(self, changes: Sequence[Change]) -> tuple[TaskHandle, ...]:
        """Begin these changes and return at once. Every failure, also of a call itself, comes through `wait`."""
        ...

    def wait(self, tasks: Sequence[TaskHandle], timeout_s: float) -> tuple[Update, ...]:
        """Return news of these tickets; empty when there was none in `timeout_s` seconds."""
        ...

    def vgpu_managers(self, hosts: Collection[HostRef]) -> Mapping[HostRef, str]:
        """Return the version of the NVIDIA vGPU manager on each host that has one and says so."""
        ...

    def counts(self, asks: Mapping[Place, Sequence[Ask]]) -> Counts:
        """Return how much is left of each thing asked about, as vCenter counts; what it does not know is left out.

        Nothing is known before vSphere 9.
        """
        ...

    def direct_path_profiles(self) -> tuple[DirectPathProfile, ...]:
        """Return the devices that have a name in vCenter (DirectPath profiles); none before vSphere 9."""
        ...

    def cpu_times(self, vms: Collection[str], seconds: float) -> Mapping[str, CpuTimes]:
        """Return what these VMs' CPUs waited for in the last so many seconds; a VM without a sample is left out."""
        ...

    def file_size(self, file: str) -> int:
        """Return the size of `[datastore] path`; VSphereError `datastore.no-file` or `datastore.refused`."""
        ...

    def fetch(self, file: str, notify: Callable[[int, int], None]) -> Path:
        """Return `[datastore] path` on this machine, as it is now; reports bytes that came, and of how many."""
        ...

    def hold(self, cluster: str) -> AbstractContextManager[None]:
        """Hold the cluster's lock in vCenter; NotPossible `lock.held`, naming the holder, when somebody else has it."""
        ...

    def log_event(self, message: str) -> None:
        """Write a line into vCenter's own events; nothing is written where the account may not."""
        ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestPlace:
    """Where a node's guest answers, and how vCenter vouches for it."""

    name: str
    address: str
    vm: str  # the VM's reference: another one means another machine
    published: str = ""  # SSH host keys that the guest published through vCenter, comma-separated


class Guests(Protocol):
    """The guests of one cluster. Each is worked on in a thread of its own; one's failure leaves the others alone."""

    def vouched(self, place: GuestPlace) -> tuple[str, ...]:
        """Return the host keys the guest is pinned to, `KIND BASE64`; those it published are pinned first."""
        ...

    def reach(self, places: Sequence[GuestPlace], deadline_s: float) -> Mapping[str, VsmlError]:
        """Wait until they answer; return, by name, the last thing that stood in the way of those that do not."""
        ...

    def each(
        self,
        places: Sequence[GuestPlace],
        work: Callable[[Shell], T],
        ended: Callable[[str, T | VsmlError], None] = ...,
    ) -> Mapping[str, T | VsmlError]:
        """Return what the work came to in each guest, by name, or the error that ended it.

        `ended` is called for each as soon as it is known, in the guest's own thread.
        """
        ...

    def log(self, name: str) -> str:
        """Return where a guest's log is; empty when it was never entered."""
        ...


class Clock(Protocol):
    def now(self) -> float:
        """Return seconds of a clock that never goes back."""
        ...

    def sleep(self, seconds: float) -> None: ...
