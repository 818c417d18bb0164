"""Turns the rest of a data centre into values: clusters, pools, rules, datastores, networks, folders."""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from pyVmomi import vim, vmodl

from vsphere_ml.core.model.inventory import (
    Admission,
    AdmissionPolicy,
    AntiAffinityRule,
    ClusterRef,
    ComputeCluster,
    Datastore,
    DatastoreRef,
    Folder,
    HostRef,
    Network,
    NetworkRef,
    PoolRef,
    Switch,
    SwitchRef,
    VmRef,
)
from vsphere_ml.core.units import Bytes, mib
from vsphere_ml.vsphere.changes.site import PortGroup, folder_ref
from vsphere_ml.vsphere.inventory.collect import Row, climb, reference

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from vsphere_ml.vsphere.inventory.collect import Properties
    from vsphere_ml.vsphere.inventory.custom_attributes import CustomAttributes

WANTED: dict[Any, tuple[str, ...]] = {
    vim.ClusterComputeResource: ("name", "parent", "configurationEx", "resourcePool", "environmentBrowser"),
    vim.ResourcePool: ("name", "parent", "owner"),
    vim.Datastore: ("name", "summary.capacity", "summary.freeSpace", "summary.accessible"),
    vim.Network: ("name",),
    vim.dvs.DistributedVirtualPortgroup: (
        "key",
        "config.distributedVirtualSwitch",
        "config.uplink",
        "config.defaultPortConfig",
        "config.numPorts",
        "config.autoExpand",
        "config.type",
    ),
    # A switch's MTU is a property of VMware's own kind of switch config; it is not in the declared type of `config`.
    vim.DistributedVirtualSwitch: ("name", "uuid", "config", "capability.featuresSupported"),
    vim.Folder: ("name", "parent", "customValue"),
}
_KINDS = (
    (vim.ClusterComputeResource, "cluster"),
    (vim.ResourcePool, "pool"),
    (vim.Datastore, "datastore"),
    (vim.Network, "network"),
    (vim.DistributedVirtualSwitch, "switch"),
    (vim.Folder, "folder"),
)


def kind(found: Any) -> str:
    """Return which sort of row an object makes."""
    return next((name for each, name in _KINDS if isinstance(found, each)), "")


class Surroundings:
    """Everything of a data centre but its hosts and VMs."""

    def __init__(
        self, rows: Mapping[str, list[Row]], fields: CustomAttributes, datacenter: Any, name: str, vm_folder: Any
    ) -> None:
        self.datacenter, self.vm_folder = datacenter, vm_folder
        self._rows, self._fields, self._name = rows, fields, name
        self._folder_props = {reference(found): props for found, props in rows["folder"]}
        self.folder_objects: dict[str, tuple[Any, str | None]] = {"": (vm_folder, None)}
        self.folders = self._folders()
        self.clusters = tuple(sorted(map(self._cluster, rows["cluster"]), key=lambda c: (c.name, c.ref)))
        self.datastores = tuple(sorted(map(_datastore, rows["datastore"]), key=lambda d: (d.name, d.ref)))
        self.port_groups: dict[NetworkRef, PortGroup] = {}
        self.networks = self._networks()
        self.switch_objects = {SwitchRef(reference(found)): found for found, _ in rows["switch"]}
        self.switches = tuple(sorted(map(_distributed_switch, rows["switch"]), key=lambda s: (s.name, s.ref)))

    def in_scope(self, wanted: str | None) -> tuple[Any, ...] | None:
        """Return the clusters that a name or path means; None for no name, which means all hosts."""
        if wanted is None:
            return None
        last = wanted.strip("/").rpartition("/")[2]
        return tuple(found for found, props in self._rows["cluster"] if props.get("name") == last)

    def _folders(self) -> tuple[Folder, ...]:
        made = [Folder(ref=folder_ref(self.vm_folder), path="")]
        top = reference(self.vm_folder)
        for found, props in self._rows["folder"]:
            path = self._path(found, top)
            if path:
                mark = self._fields.owner(props.get("customValue"))
                made.append(Folder(ref=folder_ref(found), path=path, cluster_mark=mark))
                self.folder_objects[path] = (found, mark)
        return tuple(sorted(made, key=lambda folder: folder.path))

    def _path(self, found: Any, top: str) -> str | None:
        """Return a folder's path below `top`, or None when it is not there."""
        above = _parents_of(self._folder_props)
        refs = list(takewhile(lambda ref: ref != top, climb(reference(found), above)))
        if refs and above(refs[-1]) != top:
            return None
        return "/".join(self._folder_props[ref]["name"] for ref in reversed(refs))

    def _cluster(self, row: Row) -> ComputeCluster:
        found, props = row
        config = props.get("configurationEx")
        path = f"{self._parents(props)}/{props['name']}"
        drs = getattr(config, "drsConfig", None)
        return ComputeCluster(
            ref=ClusterRef(reference(found)),
            name=props["name"],
            path=path,
            drs=str(drs.defaultVmBehavior) if drs and drs.enabled else None,
            root_pool=PoolRef(reference(props["resourcePool"])),
            pools=self._pools(reference(found), path),
            rules=_rules(config),
            admission=_admission(getattr(config, "dasConfig", None)),
        )

    def _parents(self, props: Properties) -> str:
        return "/".join(("", self._name, *_names_above(props, self._folder_props)))

    def _pools(self, cluster: str, path: str) -> dict[PoolRef, str]:
        rows = {reference(found): props for found, props in self._rows["pool"]}
        paths: dict[PoolRef, str] = {}
        for ref, props in rows.items():
            if props.get("owner") is None or reference(props["owner"]) != cluster:
                continue
            paths[PoolRef(ref)] = "/".join((path, *_names_above(props, rows), props["name"]))
        return paths

    def _networks(self) -> tuple[Network, ...]:
        switches = {reference(found): props for found, props in self._rows["switch"]}
        made = []
        for found, props in self._rows["network"]:
            if props.get("config.uplink"):
                continue
            ref, name = NetworkRef(reference(found)), props["name"]
            switch: Mapping[str, Any] = switches.get(_switch(props), {})
            config = switch.get("config")
            self.port_groups[ref] = PortGroup(ref, name, switch.get("uuid"))
            made.append(
                Network(
                    ref=ref,
                    name=name,
                    switch=switch.get("name"),
                    switch_ref=SwitchRef(_switch(props)) if switch else None,
                    mtu=getattr(config, "maxMtu", None),
                    vlan=_vlan(props.get("config.defaultPortConfig")),
                    ports=_most_ports(props),
                )
            )
        return tuple(sorted(made, key=lambda network: (network.name, network.ref)))


def _names_above(props: Properties, rows: Mapping[str, Properties]) -> list[str]:
    """Return the names of those of the rows that an object is in, the outermost first."""
    parent = props.get("parent")
    refs = climb(reference(parent), _parents_of(rows)) if parent is not None else ()
    return [rows[ref]["name"] for ref in refs if ref in rows][::-1]


def _parents_of(rows: Mapping[str, Properties]) -> Callable[[str], str | None]:
    def above(ref: str) -> str | None:
        parent = rows[ref].get("parent") if ref in rows else None
        return reference(parent) if parent is not None else None

    return above


def _switch(props: Mapping[str, Any]) -> str:
    switch = props.get("config.distributedVirtualSwitch")
    return reference(switch) if switch is not None else ""


def _vlan(setting: Any) -> int | None:
    """Return the VLAN of a port group; None for a trunk or a private VLAN, which have no one number."""
    found = getattr(getattr(setting, "vlan", None), "vlanId", None)
    return found if isinstance(found, int) else None


def _distributed_switch(row: Row) -> Switch:
    found, props = row
    config = props.get("config")
    mtus = getattr(props.get("capability.featuresSupported"), "mtuCapability", None)
    members = (each.config for each in getattr(config, "host", None) or () if each.config and each.config.host)
    return Switch(
        ref=SwitchRef(reference(found)),
        name=props["name"],
        mtu=getattr(config, "maxMtu", None),
        max_mtu=getattr(mtus, "maxMtuSupported", None),
        uplinks={HostRef(reference(each.host)): _uplinks(each.backing) for each in members},
    )


def _uplinks(backing: Any) -> tuple[str, ...]:
    return tuple(sorted(spec.pnicDevice for spec in getattr(backing, "pnicSpec", None) or ()))


_POLICIES = (
    (vim.cluster.FailoverResourcesAdmissionControlPolicy, AdmissionPolicy.PERCENTAGE),
    (vim.cluster.FailoverLevelAdmissionControlPolicy, AdmissionPolicy.SLOTS),
    (vim.cluster.FailoverHostAdmissionControlPolicy, AdmissionPolicy.DEDICATED),
)


def _admission(das: Any) -> Admission | None:
    """Return HA's admission control; with percentages that vCenter finds itself they are in the same field."""
    if das is None or not das.enabled or not das.admissionControlEnabled:
        return None
    asked = das.admissionControlPolicy
    policy = next((name for kind, name in _POLICIES if isinstance(asked, kind)), AdmissionPolicy(type(asked).__name__))
    slot = getattr(asked, "slotPolicy", None)  # a fixed size; by usage, the default, it is the largest reservation
    return Admission(
        policy=policy,
        memory_percent=getattr(asked, "memoryFailoverResourcesPercent", 0),
        failures=getattr(asked, "failoverLevel", None) or 0,
        slot_memory=mib(getattr(slot, "memory", 0)),
        slot_mhz=getattr(slot, "cpu", 0),
        failover_hosts=frozenset(HostRef(reference(each)) for each in getattr(asked, "failoverHosts", None) or ()),
    )


def _rules(config: Any) -> tuple[AntiAffinityRule, ...]:
    rules = getattr(config, "rule", None) or ()
    return tuple(_rule(rule) for rule in rules if isinstance(rule, vim.cluster.AntiAffinityRuleSpec))


def _rule(rule: Any) -> AntiAffinityRule:
    members = frozenset(VmRef(reference(vm)) for vm in rule.vm or ())
    return AntiAffinityRule(key=rule.key, name=rule.name or "", vms=members, enabled=bool(rule.enabled))


def _datastore(row: Row) -> Datastore:
    found, props = row
    return Datastore(
        ref=DatastoreRef(reference(found)),
        name=props["name"],
        capacity=Bytes(props.get("summary.capacity") or 0),
        free=Bytes(props.get("summary.freeSpace") or 0),
        accessible=bool(props.get("summary.accessible")),
    )


_EPHEMERAL = "ephemeral"


def _most_ports(props: Mapping[str, Any]) -> int | None:
    """Return how many ports a distributed port group can have; None where it makes as many as are needed.

    vSphere API, DVPortgroupConfigInfo: a static one has `numPorts` unless it expands, an ephemeral one no limit.
    """
    if props.get("config.type") in {None, _EPHEMERAL} or props.get("config.autoExpand"):
        return None
    return props.get("config.numPorts")


def with_free_ports(
    networks: tuple[Network, ...], names: Collection[str], switches: Mapping[SwitchRef, Any]
) -> tuple[Network, ...]:
    """Return the networks; those of the names that have no more than so many ports, with how many are free."""
    return tuple(
        replace(each, free_ports=_free_ports(each, switch))
        if each.name in names
        and each.ports is not None
        and each.switch_ref is not None
        and (switch := switches.get(each.switch_ref)) is not None
        else each
        for each in networks
    )


def _free_ports(network: Network, switch: Any) -> int | None:
    """Return how many ports nobody is connected to, VMs that are off included; None where vCenter does not say."""
    used = _used_ports(network.ref, switch)
    return None if used is None or network.ports is None else max(0, network.ports - used)


def _used_ports(group: NetworkRef, switch: Any) -> int | None:
    criteria: Any = vim.dvs.PortCriteria(connected=True, portgroupKey=[group], inside=True)
    try:
        return len(switch.FetchDVPorts(criteria) or ())
    except (vmodl.MethodFault, vim.fault.VimFault):
        return None
