"""What vSphere HA's admission control keeps for the failure of hosts, and whether VMs that start leave that.

Rules: vSphere Availability guide, "Cluster Resource Percentage Admission Control" and "Slot Policy Admission Control";
vSphere API, `ClusterFailoverHostAdmissionControlPolicy`. vCenter counts less memory (ESXi's own is not for VMs) and
more need (each VM's overhead) than here, so it may refuse where this does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.core.model.inventory import AdmissionPolicy
from vsphere_ml.core.order import count
from vsphere_ml.core.units import Bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vsphere_ml.core.model.inventory import Admission, ComputeCluster, Host, Inventory
    from vsphere_ml.core.model.placement import NodePlacement

_LEAST_MHZ = 32  # that a VM without a CPU reservation counts as (das.vmcpuminmhz)


def ha_shortage(cluster: ComputeCluster, starting: Sequence[NodePlacement], inventory: Inventory) -> str:
    """Return why HA will not let these VMs start; empty where nothing speaks against it, or HA keeps nothing."""
    hosts = [
        each for each in inventory.hosts if each.cluster == cluster.ref and each.connected and not each.maintenance
    ]
    if cluster.admission is None or not hosts:
        return ""
    match cluster.admission.policy:
        case AdmissionPolicy.PERCENTAGE:
            return _percentage_shortage(cluster.admission.memory_percent, hosts, starting)
        case AdmissionPolicy.SLOTS:
            running = [vm for vm in inventory.vms if vm.powered_on and vm.host in {host.ref for host in hosts}]
            known = [vm.settings.memory_reservation for vm in running if vm.settings is not None]
            return _slot_shortage(cluster.admission, hosts, starting, known, len(running) - len(known))
        case _:
            return ""


def is_computed(admission: Admission) -> bool:
    """Return whether it is known what a policy keeps. Dedicated hosts keep themselves: nothing is placed there."""
    return admission.policy in {AdmissionPolicy.PERCENTAGE, AdmissionPolicy.SLOTS, AdmissionPolicy.DEDICATED}


def _percentage_shortage(percent: int, hosts: Sequence[Host], starting: Sequence[NodePlacement]) -> str:
    total = sum(host.memory for host in hosts)
    needed = sum(each.node.memory for each in starting)
    left = total - sum(host.memory_reserved for host in hosts) - needed
    if not total or left * 100 >= percent * total:
        return ""
    return (
        f"vSphere HA keeps {percent} % of {Bytes(total)} memory for a failure, and starting "
        f"{count(len(starting), 'VM')} with {Bytes(needed)} reserved leaves {max(0, left) * 100 // total} %"
    )


def _slot_shortage(
    admission: Admission, hosts: Sequence[Host], starting: Sequence[NodePlacement], known: Sequence[int], others: int
) -> str:
    """Count slots: one is the largest reservations of memory and CPU, or has a size that was set: VMs take several."""
    wanted = [*known, *(each.node.memory for each in starting)]
    memory = admission.slot_memory or max(wanted)
    mhz = admission.slot_mhz or max(_LEAST_MHZ, *(each.target.cpu_reservation_mhz for each in starting))
    slots = sorted(min(host.memory // memory, host.cores * host.cpu_mhz // mhz) for host in hosts)
    left = sum(slots[: max(0, len(slots) - admission.failures)])
    needed = others + sum(max(1, -(-each // memory)) for each in wanted)
    if needed <= left:
        return ""
    return (
        f"vSphere HA keeps slots for the failure of {count(admission.failures, 'host')}: without them there are "
        f"{left} of {Bytes(memory)} memory, and {needed} are needed once {count(len(starting), 'VM')} have started"
    )
