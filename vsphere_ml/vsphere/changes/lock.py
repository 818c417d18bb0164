"""The lock on a cluster: a folder in vCenter, whose name can be taken only once.

Its custom attribute says who holds it and beats while they live. What was left by a dead process of this machine, or
has not beaten for a minute by vCenter's clock, is taken over. A folder is removed by its id, so two who find the same
dead lock cannot remove each other's new one.
"""

from __future__ import annotations

import getpass
import json
import math
import os
import socket
import threading
import time
from contextlib import suppress
from dataclasses import asdict, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyVmomi import vim, vmodl

from vsphere_ml.core import json_text
from vsphere_ml.core.errors import NotPossible, VsmlError, VSphereError
from vsphere_ml.core.model.marks import LOCK_FOLDER
from vsphere_ml.lazy_dataclass import dataclass
from vsphere_ml.vsphere.connection.endpoint import BROKEN
from vsphere_ml.vsphere.inventory.collect import collect_below, collect_objects
from vsphere_ml.vsphere.inventory.custom_attributes import LOCK_ATTRIBUTE

if TYPE_CHECKING:
    from vsphere_ml.vsphere.connection.session import Session
    from vsphere_ml.vsphere.inventory.custom_attributes import CustomAttributes

BEAT_S = 15.0
DEAD_S = 60.0
UNSIGNED_S = 10.0  # a lock without a holder: its maker is about to write its name, or died before
_TRIES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """Who holds a lock. `where` distinguishes machines and containers of one name."""

    user: str
    host: str
    pid: int
    where: str
    since: str
    beat: str

    def text(self) -> str:
        return json.dumps(asdict(self), separators=(",", ":"))

    def __str__(self) -> str:
        return f"{self.user}@{self.host} (process {self.pid}) since {self.since}"

    @property
    def is_dead(self) -> bool:
        """Return whether the holder was a process of this machine that is gone."""
        return self.host == socket.gethostname() and self.where == this_machine() and not _is_alive(self.pid)


_KINDS = {each.name: int if each.name == "pid" else str for each in fields(Holder)}


def parse(text: str | None) -> Holder | None:
    """Return the holder that an attribute names; None when it names none."""
    try:
        found = json_text.parse(text or "")
    except ValueError:
        return None
    is_one = isinstance(found, dict) and {key: type(value) for key, value in found.items()} == _KINDS
    return Holder(**found) if is_one else None


def this_machine() -> str:
    """Return the boot and the process namespace in which process ids are ours; empty where unknown."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()[:8]
        return f"{boot}/{Path('/proc/self/ns/pid').stat().st_ino}"
    except OSError:
        return ""


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a uid without a name, as in many containers
        return f"uid {os.getuid()}"


class Lock:
    """One cluster's lock. While it is held, a thread of its own keeps it beating."""

    def __init__(self, session: Session, fields: CustomAttributes, vm_folder: Any, cluster: str) -> None:
        self._session, self._fields = session, fields
        self._above, self._cluster = vm_folder, cluster
        self._folder: Any = None
        self._since = ""
        self._stop = threading.Event()
        self._lost = threading.Event()
        self._last = math.inf  # when it was signed last, by time.monotonic
        self._thread: threading.Thread | None = None

    @property
    def name(self) -> str:
        return f"{LOCK_FOLDER}{self._cluster}"

    def take(self) -> None:
        """Take the lock; NotPossible `lock.held`, naming the holder, when somebody has it."""
        if not self._fields.loaded:
            self._session.read(self._fields.load)
        if self._above is None:
            self._above = self._only_vm_folder()
        for _ in range(_TRIES):
            try:
                # Asked again where the answer was lost: a folder that it made is unsigned, and removed like a dead one.
                self._folder = self._session.read(lambda: self._above.CreateFolder(self.name))
            except vim.fault.DuplicateName as taken:
                self._clear(taken.object)
                continue
            return self._settle()
        raise NotPossible(
            f"the lock of cluster `{self._cluster}` changes hands too fast",
            code="lock.held",
            target=self._cluster,
            hint="let the other runs end",
        )

    def _only_vm_folder(self) -> Any:
        found = {vim.Datacenter: ["vmFolder"]}
        rows = self._session.read(lambda: list(collect_below(self._session, self._session.content.rootFolder, found)))
        if len(rows) != 1:
            raise VSphereError("look at the site before locking it", code="lock.no-site", target=self._cluster)
        return rows[0][1]["vmFolder"]

    def _settle(self) -> None:
        try:
            self._sign()
        except BaseException:
            self.release()
            raise
        self._thread = threading.Thread(target=self._beat, name="vsml-lock", daemon=True)
        self._thread.start()

    def _now(self) -> datetime:
        now: datetime = self._session.read(self._session.root.CurrentTime)
        return now.astimezone(UTC)

    def _sign(self) -> None:
        begun = time.monotonic()
        now = self._now().isoformat(timespec="seconds")
        self._since = self._since or now
        holder = Holder(
            user=_user(), host=socket.gethostname(), pid=os.getpid(), where=this_machine(), since=self._since, beat=now
        )
        self._session.read(lambda: self._fields.set(self._folder, LOCK_ATTRIBUTE, holder.text()))  # twice is as once
        self._last = begun

    def _beat(self) -> None:
        while not self._stop.wait(BEAT_S) and not self._is_lost:
            try:
                self._sign()
            except vmodl.fault.ManagedObjectNotFound:
                self._lost.set()
            except (vmodl.MethodFault, VsmlError, *BROKEN):
                pass  # nothing to do but try again, until others may think us dead

    @property
    def _is_lost(self) -> bool:
        """Whether somebody removed the lock, or may: its last beat is older than a beat should be."""
        return self._lost.is_set() or time.monotonic() - self._last > DEAD_S - BEAT_S

    def assert_held(self) -> None:
        """Raise VSphereError `lock.lost` when the lock has gone to somebody else, or could not be kept beating."""
        if self._is_lost:
            raise VSphereError(
                f"the lock of cluster `{self._cluster}` was lost, so nothing more is changed",
                code="lock.lost",
                target=self._cluster,
                hint="run the command again: it looks first and finishes what is missing",
            )

    def _clear(self, folder: Any) -> None:
        """Remove a lock that nobody holds any more; NotPossible `lock.held` when somebody does."""
        holder, has_content, gone = self._inspect(folder)
        if gone:
            return
        if has_content:
            raise NotPossible(
                f"the lock folder `{self.name}` has something in it, so it is not removed",
                code="lock.not-empty",
                target=self.name,
                hint="move what is in it somewhere else",
            )
        if holder is not None and not holder.is_dead and self._age(holder) <= DEAD_S:
            raise NotPossible(
                f"cluster `{self._cluster}` is being changed by {holder}",
                code="lock.held",
                target=self._cluster,
                hint=f"wait for that run; after {DEAD_S:.0f} s without a sign of life its lock is taken over",
            )
        with suppress(vmodl.fault.ManagedObjectNotFound):  # somebody else found it dead too
            self._session.read(folder.Destroy_Task)
            self._until_gone(folder)

    def _inspect(self, folder: Any) -> tuple[Holder | None, bool, bool]:
        """Return the holder, whether the folder has content, whether it is gone. Waits for a holder to sign."""
        for _ in range(int(UNSIGNED_S)):
            seen = self._seen(folder)
            if seen is None:
                return None, False, True
            self._session.read(self._fields.load)
            holder = parse(self._fields.value(seen.get("customValue"), LOCK_ATTRIBUTE))
            if holder is not None or seen.get("childEntity"):
                return holder, bool(seen.get("childEntity")), False
            time.sleep(1)
        return None, False, False

    def _seen(self, folder: Any) -> dict[str, Any] | None:
        try:
            rows = self._session.read(
                lambda: list(collect_objects(self._session, [folder], {vim.Folder: ["customValue", "childEntity"]}))
            )
        except vmodl.fault.ManagedObjectNotFound:
            return None
        return rows[0][1] if rows else None

    def _until_gone(self, folder: Any) -> None:
        for _ in range(int(UNSIGNED_S / 0.1)):
            if self._seen(folder) is None:
                return
            time.sleep(0.1)

    def _age(self, holder: Holder) -> float:
        try:
            beat = datetime.fromisoformat(holder.beat)
        except ValueError:
            return DEAD_S + 1
        return (self._now() - beat.replace(tzinfo=beat.tzinfo or UTC)).total_seconds()

    def release(self) -> None:
        """Give the lock back. Never raises: at worst it dies a minute later."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        with suppress(vmodl.MethodFault, VsmlError, *BROKEN):
            if self._folder is not None and not self._lost.is_set():
                self._session.read(self._folder.Destroy_Task)  # by its id, so that twice is as once
                self._until_gone(self._folder)
