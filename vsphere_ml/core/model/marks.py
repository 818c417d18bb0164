"""How vsml marks what it makes. The only place that knows the names."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vsphere_ml.core.model.inventory import Vm

CLUSTER_ATTRIBUTE = "vsml.cluster"
CLUSTER_KEY = "guestinfo.vsml.cluster"
NODE_KEY = "guestinfo.vsml.node"
HOST_RECORD_ATTRIBUTE = "vsml.ats"  # on a host: what was there before vsml, and where a run stands
RESUME_ATTRIBUTE = "vsml.resume"  # on a VM: the host for whose reboot it was stopped
LOCK_FOLDER = "vsml-lock-"  # plus the cluster's name


def is_marked(vm: Vm, cluster: str) -> bool:
    """Return whether the VM carries the cluster's ownership attribute."""
    return vm.cluster_mark == cluster


def cut_short(vm: Vm, cluster: str) -> bool:
    """Return whether the VM is a clone of ours whose run was cut before its attribute was set."""
    if vm.cluster_mark is not None or vm.settings is None or vm.template:
        return False
    keys = vm.settings.extra_config
    return keys.get(CLUSTER_KEY) == cluster and keys.get(NODE_KEY) == vm.name


def node_of(vm: Vm) -> str:
    """Return the node that a marked VM says it is in its extra config; its own name when that does not say."""
    return vm.node_mark or vm.name
