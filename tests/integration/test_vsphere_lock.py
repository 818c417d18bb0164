"""The lock: who is kept out, who is not, and that it never stays for good."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from pyVmomi import vim

from tests.integration import labs, proxy
from tests.waiting import EXIT_TIMEOUT_S, until
from vsphere_ml.core.errors import NotPossible
from vsphere_ml.core.model.marks import LOCK_FOLDER
from vsphere_ml.core.plan.changes import CreateFolder, Marks
from vsphere_ml.core.ports.vcenter import Scope
from vsphere_ml.vsphere.changes import lock
from vsphere_ml.vsphere.inventory.collect import collect_below
from vsphere_ml.vsphere.inventory.custom_attributes import LOCK_ATTRIBUTE, CustomAttributes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from vsphere_ml.lab.state import Lab
    from vsphere_ml.vsphere.connection.session import Session
    from vsphere_ml.vsphere.gateway import Gateway

pytestmark = pytest.mark.lab
CLUSTER = "locked"


@pytest.fixture
def session(lab: Lab) -> Iterator[Session]:
    made = labs.sign_in(lab)
    yield made
    made.close()


@pytest.fixture
def gateway(lab: Lab) -> Iterator[Gateway]:
    made = labs.gateway(lab)
    made.read_site(Scope())
    yield made
    made.close()


def leave_a_lock(session: Session, **differs: Any) -> Any:
    """Leave a lock as another run would, differing from a live one of ours in these fields."""
    now = session.root.CurrentTime().isoformat()
    holder = {"user": "ada", "host": "elsewhere", "pid": 1, "where": "x", "since": now, "beat": now, **differs}
    folder = vm_folder(session).CreateFolder(LOCK_FOLDER + CLUSTER)
    CustomAttributes(session).set(folder, LOCK_ATTRIBUTE, json.dumps(holder))
    return folder


def vm_folder(session: Session) -> Any:
    ((_, props),) = collect_below(session, session.content.rootFolder, {vim.Datacenter: ["vmFolder"]})
    return props["vmFolder"]


def dead_process() -> int:
    """Return the id of a process that ran here and is gone."""
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


def this_machine() -> dict[str, Any]:
    return {"host": socket.gethostname(), "where": lock.this_machine()}


def locks(gateway: Gateway) -> list[str]:
    return [each.path for each in gateway.read_site(Scope()).folders if each.path.startswith(LOCK_FOLDER)]


def test_a_live_lock_keeps_others_out_and_names_its_holder(gateway: Gateway, session: Session) -> None:
    folder = leave_a_lock(session)
    with pytest.raises(NotPossible) as refusal, gateway.hold(CLUSTER):
        pytest.fail("both hold the lock")
    assert refusal.value.code == "lock.held"
    assert "ada@elsewhere (process 1)" in refusal.value.message
    folder.Destroy_Task()


def test_a_lock_of_a_live_process_here_keeps_others_out(gateway: Gateway, session: Session) -> None:
    folder = leave_a_lock(session, **this_machine(), pid=os.getppid())
    with pytest.raises(NotPossible), gateway.hold(CLUSTER):
        pytest.fail("both hold the lock")
    folder.Destroy_Task()


@pytest.mark.parametrize(
    "why",
    ["a dead process of this machine", "no beat for over a minute", "an unreadable beat", "no time zone", "no holder"],
)
def test_a_dead_lock_is_taken_over(
    gateway: Gateway, session: Session, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "UNSIGNED_S", 1.0)
    match why:
        case "a dead process of this machine":
            leave_a_lock(session, **this_machine(), pid=dead_process())
        case "no beat for over a minute":
            leave_a_lock(session, beat="2020-01-01T00:00:00+00:00")
        case "an unreadable beat":
            leave_a_lock(session, beat="soon")
        case "no time zone":
            leave_a_lock(session, beat="2020-01-01T00:00:00")
        case _:
            vm_folder(session).CreateFolder(LOCK_FOLDER + CLUSTER)
    with gateway.hold(CLUSTER):
        assert locks(gateway) == [LOCK_FOLDER + CLUSTER]
    assert locks(gateway) == []


@pytest.mark.parametrize("trouble", [proxy.lost, proxy.dropped, proxy.cut], ids=["lost", "dropped", "cut"])
def test_the_lock_is_taken_where_the_answer_that_made_its_folder_is_lost(
    lab: Lab, trouble: proxy.Trouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "UNSIGNED_S", 1.0)
    with proxy.before(lab) as between:
        gateway = between.gateway()
        gateway.read_site(Scope())
        with between.breaking("CreateFolder", trouble) as rule, gateway.hold(CLUSTER):
            assert rule.done == 1
            assert locks(gateway) == [LOCK_FOLDER + CLUSTER]
        assert locks(gateway) == []
        gateway.close()


def test_a_dead_process_elsewhere_is_not_ours_to_judge(gateway: Gateway, session: Session) -> None:
    folder = leave_a_lock(session, pid=dead_process())
    with pytest.raises(NotPossible), gateway.hold(CLUSTER):
        pytest.fail("both hold the lock")
    folder.Destroy_Task()


def test_a_lock_folder_with_something_in_it_is_never_removed(gateway: Gateway, session: Session) -> None:
    folder = leave_a_lock(session, beat="2020-01-01T00:00:00+00:00")
    inside = folder.CreateFolder("somebody's")
    with pytest.raises(NotPossible) as refusal, gateway.hold(CLUSTER):
        pytest.fail("the lock was taken")
    assert refusal.value.code == "lock.not-empty"
    inside.Destroy_Task()
    folder.Destroy_Task()


def test_the_lock_beats_and_says_who_and_where(
    gateway: Gateway, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "BEAT_S", 0.05)
    with gateway.hold(CLUSTER):
        first = read_holder(session)
        assert (first.host, first.pid) == (socket.gethostname(), os.getpid())
        until(lambda: read_holder(session).beat > first.beat, "there is no beat")
        assert read_holder(session).since == first.since


def read_holder(session: Session) -> lock.Holder:
    fields = CustomAttributes(session)
    fields.load()
    rows = collect_below(session, session.content.rootFolder, {vim.Folder: ["name", "customValue"]})
    (values,) = [props["customValue"] for _, props in rows if props["name"] == LOCK_FOLDER + CLUSTER]
    holder = lock.parse(fields.value(values, LOCK_ATTRIBUTE))
    assert holder is not None
    return holder


def code_of_a_change(gateway: Gateway, path: str) -> str:
    """Make a folder and return the error's code; empty where it was made."""
    (task,) = gateway.start([CreateFolder(path=path, marks=Marks(cluster=CLUSTER))])
    (update,) = gateway.wait([task], EXIT_TIMEOUT_S)
    return update.error.code if update.error is not None else ""


def test_a_lock_that_has_not_beaten_for_long_counts_as_lost_although_nobody_says_so(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    with gateway.hold(CLUSTER):
        assert not code_of_a_change(gateway, "in-time")
        with monkeypatch.context() as patch:
            patch.setattr(lock, "DEAD_S", 0.0)
            assert code_of_a_change(gateway, "late") == "lock.lost"
    assert locks(gateway) == []


def test_nothing_is_changed_any_more_once_the_lock_is_lost(
    gateway: Gateway, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "BEAT_S", 0.05)
    with gateway.hold(CLUSTER):
        for child in vm_folder(session).childEntity:
            if child.name == LOCK_FOLDER + CLUSTER:
                child.Destroy_Task()
        tried: list[str] = []

        def is_refused() -> bool:
            tried.append(f"late-{len(tried)}")
            return code_of_a_change(gateway, tried[-1]) == "lock.lost"

        until(is_refused, "the loss is not noticed")
        assert is_refused()
    made = {folder.path for folder in gateway.read_site(Scope()).folders}
    assert not made & set(tried[-2:])


def test_the_lock_is_given_back_when_its_work_fails(gateway: Gateway) -> None:
    with pytest.raises(ZeroDivisionError), gateway.hold(CLUSTER):
        _ = 1 / 0
    assert locks(gateway) == []
