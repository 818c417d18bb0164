"""What the account may do, as far as vCenter knows: a hint before the work, never a promise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyVmomi import vim, vmodl

from vsphere_ml.vsphere.connection.required import require

if TYPE_CHECKING:
    from vsphere_ml.core.model.spec import ClusterSpec
    from vsphere_ml.vsphere.connection.session import Session

# By vCenter's own identifiers; each is needed on what the work touches, not on the whole inventory.
NEEDED = (
    "Datastore.AllocateSpace",
    "Folder.Create",
    "Folder.Delete",
    "Global.ManageCustomFields",
    "Global.SetCustomField",
    "Host.Inventory.EditCluster",
    "Network.Assign",
    "Resource.AssignVMToPool",
    "VirtualMachine.Config.AddNewDisk",
    "VirtualMachine.Config.AddRemoveDevice",
    "VirtualMachine.Config.AdvancedConfig",
    "VirtualMachine.Config.CPUCount",
    "VirtualMachine.Config.DiskExtend",
    "VirtualMachine.Config.EditDevice",
    "VirtualMachine.Config.Memory",
    "VirtualMachine.Config.Resource",
    "VirtualMachine.Config.Settings",
    "VirtualMachine.Config.UpgradeVirtualHardware",
    "VirtualMachine.Interact.PowerOff",
    "VirtualMachine.Interact.PowerOn",
    "VirtualMachine.Inventory.CreateFromExisting",
    "VirtualMachine.Inventory.Delete",
    "VirtualMachine.Provisioning.Clone",
    "VirtualMachine.Provisioning.DeployTemplate",
)
# What a template takes that is deployed from an OVF package, from here or by a library's item.
FOR_OVF = ("VApp.Import", "VirtualMachine.Provisioning.MarkAsTemplate")
FOR_STORAGE_POLICY = ("StorageProfile.View",)


def privileges_for(spec: ClusterSpec) -> tuple[str, ...]:
    """Return the privileges that provisioning this cluster takes. An item of a library may be of type OVF."""
    ovf = FOR_OVF if spec.source.ovf or spec.source.library else ()
    return (*NEEDED, *ovf, *(FOR_STORAGE_POLICY if spec.location.storage_policy else ()))


def missing_privileges(session: Session, wanted: tuple[str, ...] = NEEDED) -> tuple[str, ...] | None:
    """Return the privileges that the account does not have on every data centre it sees; None when unknown.

    They may still be granted further down, on a folder or a pool.
    """
    try:
        answers = session.read(lambda: _ask(session, wanted))
    except (vmodl.MethodFault, vim.fault.VimFault):
        return None  # reading privileges is itself a privilege
    granted = {each.privId for answer in answers for each in answer.privAvailability or () if each.isGranted}
    return tuple(each for each in wanted if each not in granted) if answers else None


def _ask(session: Session, wanted: tuple[str, ...]) -> Any:
    content = session.content
    places = [each for each in content.rootFolder.childEntity if isinstance(each, vim.Datacenter)]
    key = require(content.sessionManager, "currentSession").key
    return content.authorizationManager.HasPrivilegeOnEntities(
        entity=[content.rootFolder, *places], sessionId=key, privId=list(wanted)
    )
