"""The journal: on disk before a change begins, complete after a kill, and without a secret."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from tests.fakes.pictures import quad_8u3
from tests.fakes.requirements import cluster
from tests.fakes.site import FakeVCenter
from tests.unit.flows.acting import provision
from vsphere_ml.cli.wiring.journal import (
    NAME,
    Author,
    Journal,
    change_entry,
    journal_changes,
    journal_host_steps,
    read_entries,
)
from vsphere_ml.core.errors import ConfigError, VSphereError
from vsphere_ml.core.hosts.host_changes import EnterMaintenance, ExitMaintenance
from vsphere_ml.core.model.inventory import HostRef
from vsphere_ml.core.plan.changes import CloneVm, PowerOn, UpgradeHardware
from vsphere_ml.core.plan.describe import object_name
from vsphere_ml.core.ports.host_events import StepBegun, StepDone, StepFailed
from vsphere_ml.flows.cluster.proposal import GuestConfig
from vsphere_ml.guest.firstboot import first_boots

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from vsphere_ml.core.plan.changes import Change
    from vsphere_ml.core.ports.vcenter import TaskHandle

ON = PowerOn(vm="node-1")


def journal(folder: Path, name: str = "train") -> Journal:
    return Journal(folder / "state" / NAME, Author(command="provision", cluster=name, vcenter="vc.lab.test"))


def entries(folder: Path, name: str = "train") -> list[dict[str, Any]]:
    return read_entries(folder / "state" / NAME, name)[0]


@dataclass(slots=True)
class Watched(FakeVCenter):
    """A site that looks into the journal whenever a change arrives, and may be killed then."""

    path: Path | None = None
    seen: list[bool] = field(default_factory=list)  # whether each change was in the journal when it arrived

    def start(self, changes: Sequence[Change]) -> tuple[TaskHandle, ...]:
        assert self.path is not None
        written = {(each["kind"], each["object"]) for each in read_entries(self.path, "train")[0]}
        self.seen += [(type(each).__name__, object_name(each)) in written for each in changes]
        return FakeVCenter.start(self, changes)


def test_a_change_is_on_disk_before_it_reaches_vcenter_and_again_when_it_has_ended(tmp_path: Path) -> None:
    site, ours = Watched(quad_8u3()), journal(tmp_path)
    site.path = ours.path
    made = journal_changes(site, ours)
    assert provision(cluster(3), made).done  # type: ignore[arg-type]
    assert len(site.seen) > 3
    assert all(site.seen)
    assert [ours.run in each and ours.author.cluster in each for each in site.logged] == [True]
    answers = entries(tmp_path)
    assert {each["outcome"] for each in answers} == {"done"}
    assert all(each["ended"] >= each["time"] for each in answers)
    assert {each["user"] != "" and each["command"] for each in answers} == {"provision"}


def test_lines_are_on_disk_before_another_change_begins_and_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = journal(tmp_path)
    on_disk: list[int] = []

    class Looking(FakeVCenter):
        def start(self, changes: Sequence[Change]) -> tuple[TaskHandle, ...]:
            assert on_disk[-1] == ours.path.stat().st_size
            return FakeVCenter.start(self, changes)

    monkeypatch.setattr("os.fsync", lambda descriptor: on_disk.append(os.fstat(descriptor).st_size))
    report = provision(cluster(3), journal_changes(Looking(quad_8u3()), ours))  # type: ignore[arg-type]
    assert report.done
    assert on_disk[-1] == ours.path.stat().st_size


def test_a_change_whose_end_nobody_saw_is_unknown(tmp_path: Path) -> None:
    journal(tmp_path).begin([ON])
    with (tmp_path / "state" / NAME).open("a") as file:
        file.write('{"schema": "vsml.log/1", "time"')  # killed while it wrote
    later = journal(tmp_path)
    (number,) = later.begin([ON])
    later.end([(number, ON, VSphereError("no host", code="vsphere.failed"))])
    answers, broken = read_entries(tmp_path / "state" / NAME, "train")
    assert [each["outcome"] for each in answers] == ["unknown", "failed"]
    assert (answers[1]["error"], broken) == ({"code": "vsphere.failed", "message": "no host"}, 1)


def test_clusters_share_the_file_and_are_told_apart(tmp_path: Path) -> None:
    journal(tmp_path, "other").begin([ON])
    journal(tmp_path).begin([ON])
    assert [len(entries(tmp_path, name)) for name in ("train", "other", "third")] == [1, 1, 0]
    assert (tmp_path / "state" / NAME).stat().st_mode & 0o077 == 0


def test_before_and_after_stand_beside_each_other() -> None:
    answers = change_entry(UpgradeHardware(vm="node-1", version=21, was=19))
    assert (answers["object"], answers["before"], answers["after"]["version"]) == ("node-1", {"was": 19}, 21)


def test_what_a_guest_is_told_at_its_first_boot_is_not_in_it(tmp_path: Path) -> None:
    spec, site, ours = cluster(1), FakeVCenter(quad_8u3()), journal(tmp_path)
    given = GuestConfig(first_boots=first_boots(spec, ("ssh-ed25519 AAAA me",)))
    made = journal_changes(site, ours)
    provision(spec, made, given=given)  # type: ignore[arg-type]
    text = ours.path.read_text()
    for value in given.first_boots["node-1"].keys.values():
        assert value == "" or len(value) < 20 or value not in text
    assert any(each["kind"] == CloneVm.__name__ for each in entries(tmp_path))


def test_nothing_is_begun_when_the_journal_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file where the folder was to be")
    site = FakeVCenter(quad_8u3())
    with pytest.raises(ConfigError) as refusal:
        journal_changes(site, journal(tmp_path)).start([ON])
    assert refusal.value.code == "log.unwritable"


def test_steps_on_hosts_are_written_too(tmp_path: Path) -> None:
    first = EnterMaintenance(host=HostRef("host-1"), host_name="esx-01")
    second = ExitMaintenance(host=HostRef("host-1"), host_name="esx-01")
    events: list[object] = []
    listener = journal_host_steps(journal(tmp_path), events.append)
    listener(StepBegun(change=first, number=1, deadline_s=1.0))
    assert entries(tmp_path)[0]["outcome"] == "unknown"
    listener(StepDone(change=first, seconds=1.0))
    listener(StepBegun(change=second, number=2, deadline_s=1.0))
    listener(StepFailed(change=second, error=VSphereError("no", code="vsphere.failed")))
    assert [(each["object"], each["kind"], each["outcome"]) for each in entries(tmp_path)] == [
        ("esx-01", "EnterMaintenance", "done"),
        ("esx-01", "ExitMaintenance", "failed"),
    ]
    assert len(events) == 4


@pytest.mark.parametrize("line", ["", "[]", "{}", "\x00", json.dumps({"schema": "vsml.log/1", "event": "end"})])
def test_what_is_no_line_of_a_journal_is_counted_and_left_out(line: str, tmp_path: Path) -> None:
    file = tmp_path / NAME
    file.write_text(f"{line}\n")
    assert read_entries(file, "train") == ([], 1 if line else 0)
