"""What vCenter refuses, or fails at later, comes out as one code, what it was about, and vCenter's own sentence."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from tests.contract.vcenter_contract import Rig
from tests.integration import control, labs
from vsphere_ml.core.errors import VSphereError
from vsphere_ml.core.model.marks import CLUSTER_ATTRIBUTE
from vsphere_ml.core.plan.changes import CreateFolder, DeleteVm, Marks, PowerOff, PowerOn
from vsphere_ml.core.ports.vcenter import Scope, Update
from vsphere_ml.vsphere.inventory.collect import managed_object
from vsphere_ml.vsphere.inventory.custom_attributes import CustomAttributes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vsphere_ml.lab.state import Lab

pytestmark = pytest.mark.lab


@pytest.fixture
def rig(lab: Lab) -> Iterator[Rig]:
    made = Rig(labs.gateway(lab), "faults")
    yield made
    control.forgive(lab)
    made.sweep()
    made.vcenter.close()


def failure(rig: Rig, name: str) -> VSphereError:
    (error,) = rig.settle(rig.clone(name))
    assert isinstance(error, VSphereError)
    return error


@pytest.mark.parametrize("kind", ["sync", "task"])
@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ("InsufficientGraphicsResourcesFault", "vsphere.graphics-capacity"),
        ("NoPermission", "vsphere.no-permission"),
        ("NoDiskSpace", "vsphere.no-disk-space"),
        ("ConcurrentAccess", "vsphere.busy"),
        ("GenericVmConfigFault", "vsphere.vm-config"),
        ("InvalidDatastorePath", "vsphere.datastore"),
        ("SystemError", "vsphere.task-failed"),
    ],
)
def test_a_fault_has_the_same_code_now_and_later(lab: Lab, rig: Rig, kind: str, fault: str, code: str) -> None:
    control.fail(lab, "CloneVM_Task", fault, kind=kind, message="vCenter's own")
    error = failure(rig, "n-1")
    assert (error.code, error.target) == (code, "n-1")
    assert {"`ubuntu-22.04-gpu`", "`n-1`"} <= set(error.message.split())
    assert "vCenter's own" in error.message
    assert error.__cause__ is not None


def test_a_missing_privilege_is_named_with_its_object(lab: Lab, rig: Rig) -> None:
    control.fail(lab, "CloneVM_Task", "NoPermission")
    text = " ".join(failure(rig, "n-1").details)
    assert "privilege" in text
    assert " on " in text


def test_a_look_that_is_refused_says_so(lab: Lab, rig: Rig) -> None:
    control.fail(lab, "RetrievePropertiesEx", "NoPermission")
    with pytest.raises(VSphereError) as caught:
        rig.read_site()
    assert caught.value.code == "vsphere.no-permission"


def test_the_sign_in_is_renewed_in_the_middle_of_waiting(lab: Lab, rig: Rig) -> None:
    change = rig.clone("n-1")
    control.ask(lab, "POST", "delays", {"CloneVM_Task": 1500})
    (task,) = rig.vcenter.start([change])
    control.expire(lab)
    assert rig.end(task) == [None]
    assert rig.vm("n-1").cluster_mark == rig.cluster


def test_a_restart_in_the_middle_ends_the_change_with_a_word_on_what_to_do(lab: Lab, rig: Rig) -> None:
    rig.do(rig.clone("n-1"))
    control.ask(lab, "POST", "delays", {"PowerOnVM_Task": 1500})
    (task,) = rig.vcenter.start([PowerOn(vm="n-1")])
    control.restart(lab, down_ms=0)
    time.sleep(0.5)
    (error,) = rig.end(task)
    assert error is None or (error.code == "vsphere.task-lost" and error.hint)
    assert rig.vm("n-1").powered_on == (error is None)


def test_a_write_that_breaks_is_not_repeated_blindly(lab: Lab, rig: Rig) -> None:
    rig.read_site()
    folders = {folder.path for folder in rig.read_site().folders}
    control.restart(lab, down_ms=0)
    time.sleep(0.5)
    code = [error.code if error else None for error in rig.settle(CreateFolder(path="f", marks=Marks(cluster="c")))]
    assert code in (["vcenter.interrupted"], [None])
    made = {folder.path for folder in rig.read_site().folders} - folders
    assert made == ({"f"} if code == [None] else set())


def test_a_shut_down_is_asked_of_a_guest_with_tools_first(lab: Lab, rig: Rig) -> None:
    rig.do(rig.clone("n-1"))
    rig.do(PowerOn(vm="n-1"))
    control.ask(lab, "POST", "vms/n-1", {"guest_ip": "192.0.2.7"})
    assert (rig.vm("n-1").guest_ip, rig.vm("n-1").tools) == ("192.0.2.7", "guestToolsRunning")
    rig.do(PowerOff(vm="n-1"))
    assert control.ask(lab, "GET", "calls").get("ShutdownGuest") == 1
    assert not rig.vm("n-1").powered_on


def test_progress_is_told_while_a_task_runs(lab: Lab, rig: Rig) -> None:
    change = rig.clone("n-1")
    control.ask(lab, "POST", "delays", {"CloneVM_Task": 5000})
    (task,) = rig.vcenter.start([change])
    seen: list[Update] = []
    while not any(update.done for update in seen):
        seen += rig.vcenter.wait([task], 10)
    percents = [update.percent for update in seen if update.percent is not None]
    assert percents == sorted(percents)
    assert percents


def test_waiting_ends_when_its_time_is_over(lab: Lab, rig: Rig) -> None:
    change = rig.clone("n-1")
    control.ask(lab, "POST", "delays", {"CloneVM_Task": 3_600_000})
    (task,) = rig.vcenter.start([change])
    assert not [update for update in rig.vcenter.wait([task], 1.0) if update.done]
    control.forgive(lab)
    assert rig.end(task) == [None]


def test_a_look_asks_nothing_newer_than_the_server(lab: Lab, rig: Rig) -> None:
    assert rig.vcenter.read_site(Scope(devices=False)).hosts[0].gpus  # the lean read shows GPUs, without their places
    assert not rig.vcenter.read_site(Scope(devices=False)).hosts[0].pci


def test_a_vm_that_changed_hands_after_the_look_is_not_deleted(lab: Lab, rig: Rig) -> None:
    rig.do(rig.clone("n-1"))
    ref = rig.vm("n-1").ref
    _give_to(lab, ref, "somebody-else")
    assert rig.refused(DeleteVm(vm="n-1")) == "vsphere.not-ours"
    _give_to(lab, ref, rig.cluster)
    rig.do(DeleteVm(vm="n-1"))


def _give_to(lab: Lab, ref: str, owner: str) -> None:
    other = labs.sign_in(lab)
    fields = CustomAttributes(other)
    fields.load()
    fields.set(managed_object(other, "vim.VirtualMachine", ref), CLUSTER_ATTRIBUTE, owner)
    other.close()
