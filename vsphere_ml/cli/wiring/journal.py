"""The journal of changes: one JSON line before each change and one after it, on disk before another change begins.

A line says who changed what, when, from what to what. A begin without an end is a change whose outcome this machine
does not know: the run was killed, and vCenter may have gone on.
"""

from __future__ import annotations

import dataclasses
import fcntl
import getpass
import json
import os
import socket
import uuid
from dataclasses import field
from datetime import UTC, datetime
from itertools import count
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeGuard, cast

from vsphere_ml.cli.wiring.guest_wiring import home
from vsphere_ml.core import json_text
from vsphere_ml.core.errors import ConfigError, VsmlError
from vsphere_ml.core.model.marks import CLUSTER_KEY, NODE_KEY
from vsphere_ml.core.plan.changes import SetSettings
from vsphere_ml.core.plan.describe import TEXTS, describe, drift_of, object_name
from vsphere_ml.core.plan.plan import Plan, Stage
from vsphere_ml.flows.cluster.saved import stages_of
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from vsphere_ml.core.hosts.host_changes import HostChange
    from vsphere_ml.core.model.spec import ClusterSpec
    from vsphere_ml.core.plan.changes import Change
    from vsphere_ml.core.ports.host_events import HostEvent, HostListener
    from vsphere_ml.core.ports.vcenter import TaskHandle, Update, VCenter

SCHEMA = "vsml.log/1"
NAME = "changes.jsonl"
LARGEST = 64 << 20  # bytes of a journal that are read, from its end
_FIRST_BOOT = "guestinfo."  # extra config that cloud-init reads; vsml's own marks are below guestinfo.vsml.


class _LoggedError(TypedDict):
    code: str
    message: str


class LoggedChange(TypedDict):
    """A change by both its lines. Of one whose end nobody saw, `outcome` is `unknown` and `ended` null."""

    time: str
    ended: str | None
    run: str
    user: str
    machine: str
    pid: int
    command: str
    cluster: str
    vcenter: str
    object: str
    what: str
    kind: str
    differences: list[str]
    before: dict[str, Any]
    after: dict[str, Any]
    outcome: Literal["done", "failed", "unknown"]
    error: _LoggedError | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Author:
    """Who changes something: a person on a machine, by a command, on a cluster of a vCenter."""

    command: str
    cluster: str
    vcenter: str

    def fields(self) -> dict[str, object]:
        return {
            "user": os.environ.get("SUDO_USER") or read_user(),
            "machine": socket.gethostname(),
            "pid": os.getpid(),
            "command": self.command,
            "cluster": self.cluster,
            "vcenter": self.vcenter,
        }


def read_user() -> str:
    """Return the name of who runs this process, its number where it has none."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user without an entry in passwd
        return str(os.getuid())


@dataclass(slots=True)
class Journal:
    """A file of JSON lines that several processes may write. Raises ConfigError `log.unwritable`."""

    path: Path
    author: Author
    run: str = field(default_factory=lambda: uuid.uuid4().hex[:12])
    numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def begin(self, changes: Sequence[Change | HostChange]) -> tuple[str, ...]:
        """Write that these changes begin; return the numbers under which their ends are written."""
        numbers = tuple(str(next(self.numbers)) for _ in changes)
        begun = zip(numbers, changes, strict=True)
        self._write([{"event": "begin", "change": number, **change_entry(change)} for number, change in begun])
        return numbers

    def end(
        self, ended: Iterable[tuple[str, Change | HostChange, VsmlError | None]], *, others_run: bool = False
    ) -> None:
        """Write what became of changes, each by its number; while `others_run`, what follows brings it to the disk."""
        self._write(
            [{"event": "end", "change": number, **_outcome_entry(change, error)} for number, change, error in ended],
            sync=not others_run,
        )

    def _write(self, entries: Sequence[Mapping[str, object]], *, sync: bool = True) -> None:
        """Write lines at once: what waits for the disk is a group of changes, not each of them."""
        if not entries:
            return
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        about = {"schema": SCHEMA, "time": now, "run": self.run, **self.author.fields()}
        lines = "".join(f"{json.dumps({**about, **entry}, ensure_ascii=False)}\n" for entry in entries)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "r+b", buffering=0) as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                file.write(_separator(file.fileno()) + lines.encode())
                if sync:
                    os.fsync(file.fileno())
        except OSError as error:
            raise ConfigError(
                f"the journal {self.path} cannot be written: {error.strerror}; nothing is changed without it",
                code="log.unwritable",
                target=str(self.path),
                hint=f"df -h {self.path.parent}; ls -ld {self.path.parent}",
            ) from error


def _separator(descriptor: int) -> bytes:
    """Return what ends a line that a killed writer left unfinished."""
    size = os.fstat(descriptor).st_size
    return b"\n" if size and os.pread(descriptor, 1, size - 1) != b"\n" else b""


def change_entry(change: Change | HostChange) -> dict[str, Any]:
    """Return a change as the journal has it: its object, what differs, and every field but guests' first-boot data."""
    if not _is_of_site(change):
        return _host_change_entry(change)
    stages = stages_of(Plan(stages=(Stage(title="", changes=(change,)),)))
    fields = dict(stages[0]["changes"][0])
    kind = fields.pop("change")
    if isinstance(change, SetSettings):
        fields = {"target": fields["target"]}
    if isinstance(target := fields.get("target"), dict):
        fields["target"] = {**target, "extra_config": _without_first_boot(target["extra_config"])}
    return {
        **_object_entry(change),
        "kind": kind,
        "differences": list(drift_of(change)),
        "before": {key: fields.pop(key) for key in ("was", "frees", "remove_names", "mac") if key in fields},
        "after": fields,
    }


def _outcome_entry(change: Change | HostChange, error: VsmlError | None) -> dict[str, Any]:
    failed = {"code": error.code, "message": error.message} if error is not None else None
    return {**_object_entry(change), "outcome": "failed" if failed else "done", "error": failed}


def _object_entry(change: Change | HostChange) -> dict[str, str]:
    if _is_of_site(change):
        return {"object": object_name(change), "what": describe(change)}
    from vsphere_ml.core.hosts.host_changes import HostChange, describe_host_change

    assert isinstance(change, HostChange)  # noqa: S101 - there is no third kind
    return {"object": change.host_name, "what": describe_host_change(change)}


def _is_of_site(change: Change | HostChange) -> TypeGuard[Change]:
    return type(change) in TEXTS


def _host_change_entry(change: Change | HostChange) -> dict[str, Any]:
    fields = {each.name: getattr(change, each.name) for each in dataclasses.fields(change)}
    after = {key: value if isinstance(value, bool | int) else str(value) for key, value in fields.items()}
    kind = type(change).__name__
    return {**_object_entry(change), "kind": kind, "differences": [], "before": {}, "after": after}


def _without_first_boot(keys: Mapping[str, str]) -> dict[str, str]:
    own = (CLUSTER_KEY, NODE_KEY)
    return {key: value for key, value in keys.items() if key in own or not key.startswith(_FIRST_BOOT)}


def read_entries(path: Path, cluster: str) -> tuple[list[dict[str, Any]], int]:
    """Return a cluster's changes, the oldest first, each with its outcome; and how many lines are none of a journal.

    A change without an end is `unknown`. Raises ConfigError `file.unreadable`.
    """
    changes: dict[tuple[str, str, str], dict[str, Any]] = {}
    broken = 0
    for line in _read_lines(path):
        entry = _parse_entry(line)
        if entry is None:
            broken += 1
        elif entry["cluster"] == cluster:
            key = (entry["machine"], entry["run"], entry["change"])
            if entry["event"] == "begin":
                changes[key] = {**entry, "outcome": "unknown", "ended": None, "error": None}
            elif key in changes:
                changes[key] |= {"outcome": entry["outcome"], "ended": entry["time"], "error": entry["error"]}
    return list(changes.values()), broken


def _read_lines(path: Path) -> list[bytes]:
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - LARGEST))
            lines = file.read(LARGEST).split(b"\n")
    except FileNotFoundError:
        return []
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be read: {error.strerror}", code="file.unreadable", target=str(path)
        ) from error
    return [line for line in (lines[1:] if size > LARGEST else lines) if line]


def _parse_entry(line: bytes) -> dict[str, Any] | None:
    try:
        entry = json_text.parse(line)
    except ValueError:
        return None
    texts = ("time", "run", "user", "machine", "cluster", "command", "event", "change", "object", "what")
    if not isinstance(entry, dict) or entry.get("schema") != SCHEMA:
        return None
    complete = all(isinstance(entry.get(key), str) for key in texts)
    return entry if complete and (entry["event"] == "begin" or {"outcome", "error"} <= entry.keys()) else None


def open_journal(spec: ClusterSpec, command: str) -> Journal:
    """Return the journal that a command writes to."""
    vcenter = f"lab {spec.vcenter.lab}" if spec.vcenter.lab is not None else spec.vcenter.server or ""
    return Journal(home(spec) / NAME, Author(command=command, cluster=spec.name, vcenter=vcenter))


def journal_host_steps(journal: Journal, listener: HostListener) -> HostListener:
    """Return a listener that writes each step before it is taken, and its outcome after it."""
    from vsphere_ml.core.ports.host_events import StepBegun, StepDone, StepFailed

    begun: dict[int, str] = {}  # by the identity of the change

    def hear(event: HostEvent, /) -> None:
        match event:
            case StepBegun():
                (begun[id(event.change)],) = journal.begin([event.change])
            case StepDone() | StepFailed() if (number := begun.pop(id(event.change), None)) is not None:
                error = event.error if isinstance(event, StepFailed) else None
                journal.end([(number, event.change, error)])
            case _:
                pass
        listener(event)

    return hear


def journal_changes(vcenter: VCenter, journal: Journal) -> VCenter:
    """Return the vCenter with every change of it in the journal before it begins, and again when it has ended."""
    return cast("VCenter", _Journaled(vcenter, journal))


class _Journaled:
    """A vCenter whose changes are written down here, and whose events say where."""

    def __init__(self, vcenter: VCenter, journal: Journal) -> None:
        self._vcenter, self._journal = vcenter, journal
        self._begun: dict[int, str] = {}  # by the task's id

    def __getattr__(self, name: str) -> Any:
        return getattr(self._vcenter, name)

    def start(self, changes: Sequence[Change]) -> tuple[TaskHandle, ...]:
        numbers = self._journal.begin(changes)
        tasks = self._vcenter.start(changes)
        self._begun.update(zip((task.id for task in tasks), numbers, strict=True))
        return tasks

    def log_event(self, message: str) -> None:
        who = self._journal.author.fields()
        by = f"{who['user']}@{who['machine']} (process {who['pid']})"
        self._vcenter.log_event(f"vsml {who['command']}: {by} {message}, run {self._journal.run} in its journal")

    def wait(self, tasks: Sequence[TaskHandle], timeout_s: float) -> tuple[Update, ...]:
        updates = self._vcenter.wait(tasks, timeout_s)
        ended = [each for each in updates if each.done and each.task.id in self._begun]
        lines = [(self._begun.pop(each.task.id), each.task.change, each.error) for each in ended]
        self._journal.end(lines, others_run=bool(self._begun))
        return updates
