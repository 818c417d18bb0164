"""Which running VMs DRS takes away from a host that enters maintenance mode, and why not the others.

Sources: vSphere API, `HostSystem.EnterMaintenanceMode_Task`: DRS migrates by itself in fully automated mode only;
`ClusterDrsVmConfigInfo`: a VM's own automation level counts instead of its cluster's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.core.model.esxi_state import Automation, Tie

if TYPE_CHECKING:
    from collections.abc import Iterable

    from vsphere_ml.core.model.esxi_state import DrsState, VmOnHost

# Of a cluster's DRS. The first from vCenter 7.0 U3f on (Broadcom KB 88271), the second from 8.0 U2 on (KB 313479).
VGPU_OPTIONS = (("VgpuMMAutomationTimeoutSecs", "-1"), ("PassthroughDrsAutomation", "1"))
HINT = (
    "set DRS of the cluster to fully automated (for VMs with vGPUs also its advanced option "
    f"{VGPU_OPTIONS[0][0]} = {VGPU_OPTIONS[0][1]}), migrate these VMs yourself, or shut them down"
)


def moved_by_drs(drs: DrsState | None, running: Iterable[VmOnHost]) -> tuple[VmOnHost, ...]:
    """Return the VMs that DRS migrates."""
    return tuple(vm for vm in running if not why_not_moved(drs, vm))


def why_not_moved(drs: DrsState | None, vm: VmOnHost) -> str:
    """Return why DRS does not migrate a VM, in words; empty when it does."""
    if drs is None:
        return "there is no DRS"
    automation = vm.automation or drs.automation
    if automation is not Automation.FULL:
        whose = "of this VM" if vm.automation else "of the cluster"
        return f"DRS {whose} is {automation.value}"
    if vm.tie is Tie.FUNCTION:
        return "it has a PCI function of the host"
    if vm.tie is Tie.VGPU and not drs.vgpus:
        return "it has a vGPU, which DRS migrates only where an option says so"
    return ""
