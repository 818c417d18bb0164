"""Which VM of vCenter a node of Kubernetes is, and so on which ESXi host its pods run."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from vsphere_ml.core.diagnostics import Severity
from vsphere_ml.core.order import count
from vsphere_ml.kubernetes.cluster.findings import ClusterFinding
from vsphere_ml.kubernetes.cluster.nodes import name_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from vsphere_ml.core.model.inventory import Vm
    from vsphere_ml.core.ports.kubernetes import ApiObject

PROVIDER = "vsphere://"  # and the VM's BIOS UUID: kubernetes/cloud-provider-vsphere, of a Supervisor's clusters too
_UUID = 36  # letters


def find_vms(nodes: Iterable[ApiObject], vms: Iterable[Vm]) -> dict[str, Vm]:
    """Return the VM of each node that has one here: by what its cloud provider or its firmware says, else by its name.

    A name counts only for a node that says no UUID of a VM here: clusters beside each other may have nodes alike.
    """
    powered = [vm for vm in vms if not vm.template]
    by_uuid = {vm.uuid: vm for vm in powered if vm.uuid}
    names = Counter(vm.name for vm in powered)
    by_name = {vm.name: vm for vm in powered if names[vm.name] == 1}
    found: dict[str, Vm] = {}
    for node in nodes:
        uuids = list(read_uuids(node))
        vm = next((by_uuid[each] for each in uuids if each in by_uuid), None)
        if vm is None and not node.get("spec", {}).get("providerID"):
            vm = by_name.get(name_of(node))
        if vm is not None:
            found[name_of(node)] = vm
    return found


def read_uuids(node: ApiObject) -> Iterator[str]:
    """Yield the UUIDs by which vCenter may know a node's VM.

    The firmware's has its first three parts in the other order of bytes (cloud-provider-vsphere,
    ConvertK8sUUIDtoNormal), or in the same where the hardware version says so.
    """
    provider = str(node.get("spec", {}).get("providerID") or "")
    if provider.startswith(PROVIDER):
        yield provider.removeprefix(PROVIDER).strip().lower()
    firmware = str(node.get("status", {}).get("nodeInfo", {}).get("systemUUID") or "").lower()
    if len(firmware) == _UUID:
        yield firmware
        yield _swap_bytes(firmware)


def _swap_bytes(uuid: str) -> str:
    first, second, third, *rest = uuid.split("-")
    return "-".join([*(_reverse(each) for each in (first, second, third)), *rest])


def _reverse(part: str) -> str:
    return "".join(reversed([part[at : at + 2] for at in range(0, len(part), 2)]))


def judge_vm(node: str, vms: Mapping[str, Vm], hosts: Mapping[str, str]) -> ClusterFinding:
    """Return which VM a node is, and on which host; `hosts` are names by node."""
    vm, host = vms.get(node), hosts.get(node)
    if vm is None:
        seen = "no VM of this vCenter has its UUID or its name, so its host is not known"
    else:
        seen = f"VM {vm.name} on {host}" if host else f"VM {vm.name}, on no host"
    return ClusterFinding(
        fact="ESXi host",
        severity=Severity.OK if host else Severity.UNKNOWN,
        message=seen,
        command=f"kubectl get node {node} -o jsonpath='{{.spec.providerID}} {{.status.nodeInfo.systemUUID}}'",
    )


def judge_hosts(nodes: Sequence[str], hosts: Mapping[str, str]) -> ClusterFinding:
    """Return whether what passes between the nodes leaves their hosts."""
    by_host: dict[str, list[str]] = {}
    for node, host in hosts.items():
        by_host.setdefault(host, []).append(node)
    shared = [f"{', '.join(names)} on {host}" for host, names in by_host.items() if len(names) > 1]
    if shared:
        severity, seen = Severity.WARNING, f"{'; '.join(shared)}: what passes between them is not inter-host traffic"
    elif len(hosts) < len(nodes):
        severity, seen = Severity.UNKNOWN, f"of {count(len(nodes) - len(hosts), 'node')} the host is not known"
    else:
        severity, seen = Severity.OK, f"{count(len(nodes), 'node')} on {count(len(by_host), 'host')}"
    return ClusterFinding(fact="inter-host", severity=severity, message=seen, command="vsml inventory")
