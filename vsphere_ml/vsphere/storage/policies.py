"""Asks vCenter's storage policy service (PBM) which policies there are, what satisfies them, and which VMs have."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyVmomi import pbm, vim

from vsphere_ml.core.model.inventory import DatastoreRef, StorageCompliance, StoragePolicy, VmStorage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from vsphere_ml.core.model.inventory import Vm, VmRef
    from vsphere_ml.vsphere.connection.session import Session

# pyvmomi's own stubs know nothing of PBM (9.1), so its types are Any here.
_pbm: Any = pbm
_PAGE = 1000  # "A maximum of 1000 virtual machines and/or virtual disks can be specified" (PbmFetchComplianceResult)
_REQUIREMENT = "REQUIREMENT"  # PbmProfileCategoryEnum: what VMs ask for, not what storage offers


def read_policies(session: Session, wanted: str) -> tuple[StoragePolicy, ...]:
    """Return the VM storage policies in the order of their names, with the datastores that satisfy the wanted one."""
    with _service(session) as service:
        manager = service.profileManager
        kind = _pbm.profile.ResourceType(resourceType=_pbm.profile.ResourceTypeEnum.STORAGE)
        ids = manager.QueryProfile(resourceType=kind, profileCategory=_REQUIREMENT)
        found = sorted(manager.RetrieveContent(profileIds=ids), key=lambda each: each.name) if ids else ()
        return tuple(
            StoragePolicy(
                id=each.profileId.uniqueId,
                name=each.name,
                datastores=_find_datastores(service, each.profileId) if each.name == wanted else frozenset(),
            )
            for each in found
        )


def _find_datastores(service: Any, policy: Any) -> frozenset[DatastoreRef]:
    """Return the datastores without an error by PbmCheckCompatibility; it answers for storage pods, too."""
    answers = service.placementSolver.CheckCompatibility(hubsToSearch=None, profile=policy) or ()
    return frozenset(
        DatastoreRef(each.hub.hubId) for each in answers if each.hub.hubType == "Datastore" and not each.error
    )


def disk_keys(devices: Iterable[Any]) -> list[int]:
    """Return the keys of a VM's disks."""
    return [each.key for each in devices if isinstance(each, vim.vm.device.VirtualDisk)]


def with_storage(
    session: Session, vms: Sequence[Vm], disks: Mapping[VmRef, Sequence[int]], names: Mapping[str, str]
) -> tuple[Vm, ...]:
    """Return the VMs with the policies of their homes and disks; `names` are the policies' by id."""
    entities = [entity for vm in vms for entity in _entities(vm.ref, disks[vm.ref])]
    if not entities:
        return tuple(vms)
    with _service(session) as service:
        pages = [entities[at : at + _PAGE] for at in range(0, len(entities), _PAGE)]
        given = [each for page in pages for each in service.profileManager.QueryAssociatedProfiles(page) or ()]
        checked = [each for page in pages for each in service.complianceManager.FetchComplianceResult(page) or ()]
    policies: dict[str, set[str]] = {}
    for each in given:
        ids = [found.uniqueId for found in each.profileId or ()]
        policies.setdefault(_vm(each.object), set()).update(names.get(found, found) for found in ids or [""])
    compliance: dict[str, set[StorageCompliance]] = {}
    for each in checked:
        compliance.setdefault(_vm(each.entity), set()).add(StorageCompliance(each.complianceStatus))
    return tuple(_add_storage(vm, policies.get(vm.ref, set()), compliance.get(vm.ref, set())) for vm in vms)


def _add_storage(vm: Vm, policies: set[str], compliance: set[StorageCompliance]) -> Vm:
    if vm.settings is None or not policies:
        return vm
    storage = VmStorage(policies=tuple(sorted(policies)), compliance=frozenset(compliance))
    return replace(vm, settings=replace(vm.settings, storage=storage))


def _entities(vm: VmRef, disks: Iterable[int]) -> Iterator[Any]:
    made = _pbm.ServerObjectRef
    yield made(objectType="virtualMachine", key=vm)
    yield from (made(objectType="virtualDiskId", key=f"{vm}:{key}") for key in disks)


def _vm(entity: Any) -> str:
    return str(entity.key).partition(":")[0]


@contextmanager
def _service(session: Session) -> Iterator[Any]:
    stub = session.policy_stub()
    try:
        yield _pbm.ServiceInstance("ServiceInstance", stub).RetrieveContent()
    finally:
        stub.DropConnections()
