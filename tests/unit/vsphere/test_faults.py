from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyVmomi import vim, vmodl

from vsphere_ml.core.errors import VSphereError
from vsphere_ml.vsphere.faults import translate

if TYPE_CHECKING:
    from tests.golden import Golden

_fault: Any = vim.fault


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (_fault.InsufficientGraphicsResourcesFault(), "vsphere.graphics-capacity"),
        (_fault.InsufficientMemoryResourcesFault(), "vsphere.memory-capacity"),
        (_fault.InsufficientCpuResourcesFault(), "vsphere.capacity"),
        (_fault.InsufficientFailoverResourcesFault(), "vsphere.ha-admission"),
        (_fault.GenericVmConfigFault(reason="… 'libnvidia-vgx.so' … 'grid_a100-40c'."), "vsphere.vgpu-start"),
        (_fault.GenericVmConfigFault(reason="something else"), "vsphere.vm-config"),
        (_fault.InvalidDeviceBacking(), "vsphere.device-backing"),
        (_fault.DeviceBackingNotSupported(), "vsphere.device-not-supported"),
        (_fault.InvalidPowerState(), "vsphere.power-state"),
        (_fault.InvalidHostState(), "vsphere.invalid-state"),
        (_fault.InvalidDatastorePath(), "vsphere.datastore"),
        (_fault.InvalidVmConfig(), "vsphere.vm-config"),
        (vmodl.fault.HostNotConnected(), "vsphere.host-not-connected"),
        (vmodl.fault.ManagedObjectNotFound(), "vsphere.not-found"),
        (vmodl.fault.RequestCanceled(), "vsphere.canceled"),
        (_fault.Timedout(), "vsphere.task-failed"),
        (vmodl.fault.SystemError(), "vsphere.task-failed"),
    ],
)
def test_each_kind_of_fault_has_its_code(fault: Any, code: str) -> None:
    error = translate(fault, "n-1", "powering on `n-1`")
    assert (error.code, error.target, error.__cause__) == (code, "n-1", fault)


def test_vcenters_own_sentence_is_kept(golden: Golden) -> None:
    error = translate(_fault.Timedout(msg="Operation timed out."), "n-1", "cloning")
    assert (error.code, error.target) == ("vsphere.task-failed", "n-1")
    golden(error)


def test_a_sentence_without_end_is_clipped_and_made_printable() -> None:
    error = translate(_fault.Timedout(msg="\x1b[31m" + "so it goes on " * 10_000), "n-1", "cloning")
    assert len(error.message) < 1100
    assert error.message.isprintable()


def test_a_fault_without_a_sentence_is_named() -> None:
    for empty in (None, "", "*types.Timedout"):
        assert "(Timedout)" in translate(_fault.Timedout(msg=empty), "n-1").message


def test_a_missing_privilege_is_named_with_the_object_that_lacks_it(golden: Golden) -> None:
    fault = _fault.NoPermission(object=vim.Datastore("datastore-1", None), privilegeId="Datastore.AllocateSpace")
    error = translate(fault, "n-1", names={"datastore-1": "vsan"})
    assert (error.code, error.target) == ("vsphere.no-permission", "n-1")
    golden(error)


def test_every_hosts_reason_is_told_by_the_hosts_name(golden: Golden) -> None:
    full = _fault.InsufficientGraphicsResourcesFault(msg="No graphics left.")
    fault = _fault.NoCompatibleHost(host=[vim.HostSystem(f"host-{n}", None) for n in (1, 2)], error=[full, full])
    error = translate(fault, "n-1", names={"host-1": "esx-01"})
    assert (error.code, error.target) == ("vsphere.no-compatible-host", "n-1")
    golden(error)


def test_an_error_of_ours_stays_what_it_is() -> None:
    ours = VSphereError("known", code="vsphere.not-ours")
    assert translate(ours, "n-1") is ours
