"""How vsml marks what it makes. The only place that knows the names."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vsphere_ml.core.model.inventory import Vm

CLUSTER_ATTRIBUTE = "vsml.cluster"
CLUSTER_KEY = "guestinfo.vsml.cluster"
NODE_KEY = "guestinfo.vsml.node"
TEMPLATE_KEY = (
    "guestinfo.vsml.template"  # of a template that vsml has deployed, and of its clones: that template's name
)
HOST_RECORD_ATTRIBUTE = "vsml.ats"  # on a host: what was there before vsml, and how far a run is
RESUME_ATTRIBUTE = "vsml.resume"  # on a VM: the host for whose reboot it was stopped
LOCK_FOLDER = "vsml-lock-"  # plus the cluster's name


def is_marked(vm: Vm, cluster: str) -> bool:
    """Return whether the VM carries the cluster's ownership attribute."""
    return vm.cluster_mark == cluster


def cut_short(vm: Vm, cluster: str) -> bool:
    """Return whether vsml made the VM in a run that was cut before its attribute was set.

    One that vCenter deploys from a library has nothing of ours but its notes by then.
    """
    if vm.cluster_mark is not None or vm.settings is None or vm.template:
        return False
    keys = vm.settings.extra_config
    marked = keys.get(CLUSTER_KEY) == cluster and keys.get(NODE_KEY) == vm.name
    return marked or vm.settings.annotation == deployment_note(cluster, vm.name)


def template_name(cluster: str, digest: str) -> str:
    """Return the name of the template that a cluster deploys from a package with this digest (hexadecimal digits)."""
    return f"{cluster}-template-{digest[:12]}"


def deployment_note(cluster: str, name: str) -> str:
    """Return the notes of a VM that is to be a cluster's template of this name."""
    return f"Template {name} of cluster {cluster}, deployed by vsml"


def is_deployed(vm: Vm, cluster: str) -> bool:
    """Return whether the VM is a template that vsml has deployed for the cluster, or one that is not finished."""
    if not is_marked(vm, cluster) and not cut_short(vm, cluster):
        return False
    keys = vm.settings.extra_config if vm.settings is not None else {}
    return keys.get(TEMPLATE_KEY) == vm.name or vm.name.startswith(template_name(cluster, ""))


def node_of(vm: Vm) -> str:
    """Return the node that a marked VM says it is in its extra config; its own name when that does not say."""
    return vm.node_mark or vm.name
