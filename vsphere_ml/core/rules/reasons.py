"""Why a host cannot take a node: words for a person, and what can be done about each kind."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from vsphere_ml.core.errors import NotPossible
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class RejectReason(StrEnum):
    """What is missing on a host; the value is the hint, something that can be typed or changed in the file."""

    GPU = "run `vsml inventory` to see who holds the GPUs, then ask for fewer nodes or GPUs, or free some"
    NIC = 'run `vsml inventory` to see who holds the NICs, or set nic.kind = "none"'
    MODEL = "run `vsml inventory` to see which NICs the hosts have, and set nic.model to one of them"
    GROUP = (
        "leave nic.kind and gpu.kind out, and vsml pairs GPUs and NICs itself, or define such a group on the hosts: "
        "`vsml inventory` shows the groups they have"
    )
    PROFILE = "run `vsml inventory` to see which profiles the hosts offer, and set gpu.profile to one of them"
    MANAGER = (
        "install NVIDIA's vGPU manager of this ESXi release: import its depot and add it to the cluster's image "
        "(Lifecycle Manager), or `esxcli software vib install -d /vmfs/volumes/DATASTORE/FILE.zip` in maintenance "
        "mode; then reboot the host"
    )
    PASSTHROUGH = "enable passthrough of the GPUs under Configure, Hardware, PCI Devices of the host"
    LABEL = "run `vsml profiles` to see the hardware labels of the GPUs, and set gpu.label to one of them"
    PVRDMA = (
        "`govc host.option.set -host HOST Net.PVRDMAVmknic vmkN` and "
        "`govc host.esxcli -host HOST network firewall ruleset set -e true -r pvrdma`"
    )
    GRAPHICS = "`esxcli graphics host set --default-type SharedPassthru` on the host, then reboot it"
    MEMORY = "lower nodes.memory, or power off VMs that reserve memory"
    NUMA = "lower nodes.cpus or nodes.memory so that the nodes of a host share its NUMA nodes, or ask for fewer nodes"
    AFFINITY = (
        "run `vsml topology` to see which NUMA nodes have GPUs, then set nodes.numa to one of them or leave it out"
    )
    VERSION = "lower nodes.hardware_version, use an older template, or use newer hosts"
    VCENTER = "leave nic.kind and gpu.kind out, and vsml pairs GPUs and NICs itself, or use vSphere 8.0 or later"
    NETWORK = "attach the host to the switch of that port group, or set location.hosts to the hosts that have it"
    DATASTORE = "set location.datastore to one that every host mounts"
    HOST = "`govc host.info` shows its state; reconnect it, or take it out of maintenance mode or HA's failover hosts"
    FOREIGN_VMS = "move those VMs away, or set location.hosts to hosts where none of them run"


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a host cannot take a node; `rule` is the legality table's, when it is one of its rows.

    `holders` say of each device that is short who has it, or why it cannot be had.
    """

    kind: RejectReason
    words: str
    rule: str = ""
    holders: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.text} (rule {self.rule})" if self.rule else self.text

    @property
    def text(self) -> str:
        """The reason with its holders, without the rule."""
        return ": ".join(filter(None, (self.words, ", ".join(self.holders))))


def no_host_error(node: str, reasons: Mapping[str, Sequence[Reason]], *, existing_on: str | None = None) -> NotPossible:
    """Return the refusal of a node, with every host's reasons."""
    kinds = [each[0].kind for each in reasons.values() if each]
    most = max(kinds, key=kinds.count, default=None)
    hint = most.value if most else ""
    if existing_on is not None and most is RejectReason.HOST:
        hint += f"; what gives {node} another host is a new VM: `vsml destroy --only {node}`, then `vsml provision`"
    stuck = f"{existing_on}, its current host, cannot take {node}"
    return NotPossible(
        f"no host can take {node}" if existing_on is None else stuck,
        code="placement.infeasible",
        target=node,
        hint=hint,
        details=tuple(f"{host}: {'; '.join(map(str, each))}" for host, each in reasons.items()),
    )
