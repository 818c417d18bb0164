"""Finds a spec's names in an inventory. Nothing is guessed: what is not named must be the only one there is."""

from __future__ import annotations

from dataclasses import field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, TypeVar

from vsphere_ml.core.catalog.adapters import is_model
from vsphere_ml.core.diagnostics import Diagnostic, Severity
from vsphere_ml.core.errors import NotPossible
from vsphere_ml.core.model.inventory import VM_TEMPLATE, ContentLibraries, Vm, VmRef
from vsphere_ml.core.model.marks import is_marked, template_name
from vsphere_ml.core.model.placement import ResolvedSite
from vsphere_ml.core.nearest import nearest_name
from vsphere_ml.core.order import list_first
from vsphere_ml.core.rules.clone_source import check_clone_source, check_firmware
from vsphere_ml.core.units import Bytes
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from vsphere_ml.core.model.inventory import (
        ComputeCluster,
        Datastore,
        Host,
        Inventory,
        LibraryItem,
        Network,
        OvfPackage,
        PoolRef,
        StoragePolicy,
    )
    from vsphere_ml.core.model.spec import ClusterSpec

T = TypeVar("T")
_SHOWN = 12


def resolve(spec: ClusterSpec, inventory: Inventory) -> ResolvedSite:
    """Return what the spec's names stand for.

    Raises NotPossible `site.not-found` or `site.ambiguous` with every name that is missing or has several meanings, and
    as `usable` when the source cannot be used as asked.
    """
    search = _Search()
    search.datacenter(spec, inventory)
    cluster = search.cluster(spec, inventory)
    hosts = search.hosts(spec, inventory, cluster) if cluster else ()
    pool = search.pool(spec, cluster) if cluster else None
    datastore = search.datastore(spec, inventory, hosts)
    policy = search.storage_policy(spec, inventory)
    source = search.source(spec, inventory)
    networks = search.networks(spec, inventory)
    if search.problems:
        search.nic_models(spec, hosts)
    if search.problems or cluster is None or pool is None or datastore is None or source is None:
        raise search.error(inventory)
    check_clone_source(source, spec)
    if inventory.package is not None:
        check_firmware(inventory.package.name, inventory.package.firmware)
    return ResolvedSite(
        cluster=cluster,
        hosts=hosts,
        pool=pool,
        datastore=datastore,
        source=source,
        folder=folder_path(spec.location.folder, inventory.datacenter),
        networks=networks,
        storage_policy=policy,
        package=inventory.package_of(spec.source.item),
    )


def find_source(spec: ClusterSpec, inventory: Inventory) -> Vm:
    """Return what nodes are cloned from, whether or not it can be used. Raises as `resolve` of its name alone."""
    search = _Search()
    source = search.source(spec, inventory)
    if source is None:
        raise search.error(inventory)
    return source


def find_deployed(spec: ClusterSpec, package: OvfPackage, inventory: Inventory) -> Vm:
    """Return the cluster's template of a package: with an empty `ref` the one that deploying it will make."""
    name = template_name(spec.name, package.digest)
    there = (vm for vm in inventory.vms if vm.name == name and vm.template and is_marked(vm, spec.name))
    wanted = Vm(
        ref=VmRef(""),
        name=name,
        host=None,
        folder=None,
        template=True,
        powered_on=False,
        hardware_version=package.hardware_version,
        memory=package.memory or Bytes(0),
        cpus=package.cpus,
        cluster_mark=spec.name,
        node_mark=name,
    )
    return next(there, wanted)


def folder_path(folder: str | None, datacenter: str) -> str:
    """Return a folder's path below the data centre's VM folder, however it was written."""
    path = (folder or "").strip("/")
    top = f"{datacenter}/vm"
    return "" if path == top else path.removeprefix(f"{top}/")


@dataclass(slots=True)
class _Search:
    """Looks names up and keeps what could not be found, so that all of it is reported at once."""

    problems: list[Diagnostic] = field(default_factory=list)

    def one(self, key: str, kind: str, name: str | None, things: Sequence[T], path: Callable[[T], str]) -> T | None:
        """Return the thing of that name or path; with no name, the only one there is."""
        found = list(things) if name is None else _matching_names(name, things, path)
        if len(found) == 1:
            return found[0]
        if found:
            self.ambiguous(key, kind, name, [path(each) for each in found])
        else:
            self.missing(key, kind, name, [path(each) for each in things])
        return None

    def missing(
        self,
        key: str,
        kind: str,
        name: str | None,
        known: Iterable[str],
        listed: str = "run `vsml inventory` to see what the site has",
    ) -> None:
        names = sorted({_last_part(each) for each in known})
        close = nearest_name(_last_part(name), names) if name else None
        meant = f"; did you mean `{close}`?" if close else ""
        there = f"there are {_join_names(names)}" if names else "there is none"
        hint = f'set {key} = "{close}"' if close else listed
        label = f"no {kind} `{name}`" if name else f"no {kind}"
        self._refuse(key, f"{label}{meant} ({there})", hint, code="site.not-found")

    def ambiguous(self, key: str, kind: str, name: str | None, paths: Sequence[str]) -> None:
        label = f"{len(paths)} {kind}s are called `{name}`" if name else f"not set, and there are {len(paths)} {kind}s"
        hint = f'set {key} to one of them, such as "{min(paths)}"'
        self._refuse(key, f"{label}: {_join_names(sorted(paths))}", hint, code="site.ambiguous")

    def datacenter(self, spec: ClusterSpec, inventory: Inventory) -> None:
        wanted = spec.location.datacenter
        if wanted is not None and _last_part(wanted) != inventory.datacenter:
            self.missing("location.datacenter", "data centre", wanted, [inventory.datacenter])

    def cluster(self, spec: ClusterSpec, inventory: Inventory) -> ComputeCluster | None:
        return self.one(
            "location.cluster", "cluster", spec.location.cluster, inventory.clusters, lambda each: each.path
        )

    def hosts(self, spec: ClusterSpec, inventory: Inventory, cluster: ComputeCluster) -> tuple[Host, ...]:
        """Return the hosts that may be used: those of the cluster, as limited by globs and by pins."""
        there = tuple(host for host in inventory.hosts if host.cluster == cluster.ref)
        for glob in spec.location.hosts:
            if not any(names_host(glob, host) for host in there):
                self.missing("location.hosts", "host", glob, [host.name for host in there])
        globs = spec.location.hosts or ("*",)
        hosts = tuple(host for host in there if any(names_host(glob, host) for glob in globs))
        pins = {node.host: node.name for node in reversed(spec.nodes) if node.host is not None}
        for pin, node in sorted(pins.items()):
            if not any(names_host(pin, host) for host in hosts):
                self.missing(f"nodes.{node}.host", "host", pin, [host.name for host in hosts])
        if not hosts and not self.problems:
            self.missing("location.cluster", f"host in cluster `{cluster.name}`", None, ())
        return hosts

    def pool(self, spec: ClusterSpec, cluster: ComputeCluster) -> PoolRef | None:
        wanted = spec.location.pool
        if wanted is None:
            return cluster.root_pool
        found = self.one("location.pool", "resource pool", wanted, sorted(cluster.pools.items()), lambda pair: pair[1])
        return found[0] if found else None

    def datastore(self, spec: ClusterSpec, inventory: Inventory, hosts: Sequence[Host]) -> Datastore | None:
        """Return the datastore; unnamed, only those that some host of ours mounts are counted."""
        wanted = spec.location.datastore
        mounted = frozenset[str]().union(*(host.datastores for host in hosts))
        things = [each for each in inventory.datastores if wanted is not None or each.ref in mounted]
        return self.one("location.datastore", "datastore", wanted, things, lambda each: each.name)

    def storage_policy(self, spec: ClusterSpec, inventory: Inventory) -> StoragePolicy | None:
        wanted = spec.location.storage_policy
        if wanted is None:
            return None
        found = next((each for each in inventory.storage_policies if each.name == wanted), None)
        if found is None:
            there = [each.name for each in inventory.storage_policies]
            self.missing(
                "location.storage_policy", "storage policy", wanted, there, "`govc storage.policy.ls` lists them"
            )
        return found

    def source(self, spec: ClusterSpec, inventory: Inventory) -> Vm | None:
        folders = {folder.ref: folder.path for folder in inventory.folders}

        def path(vm: Vm) -> str:
            folder = folders.get(vm.folder, "") if vm.folder else ""
            return _tidy(f"{inventory.datacenter}/vm/{folder}/{vm.name}")

        if spec.source.library:
            return self.library_template(spec, inventory)
        if inventory.package is not None:
            return find_deployed(spec, inventory.package, inventory)
        wanted = spec.source.template
        found = [vm for vm in inventory.vms if vm.name == _last_part(wanted) and _ends(path(vm), wanted)]
        if len(found) == 1:
            return found[0]
        if found:
            self.ambiguous("source.template", "template", wanted, [path(vm) for vm in found])
        else:
            self.missing("source.template", "template", wanted, [vm.name for vm in inventory.vms if vm.template])
        return None

    def library_template(self, spec: ClusterSpec, inventory: Inventory) -> Vm | None:
        """Return the VM template that a content library's item is."""
        there = inventory.libraries or ContentLibraries(names=())
        library, wanted = spec.source.library, spec.source.item
        if library not in there.names:
            self.missing("source.library", "content library", library, there.names, "`govc library.ls` lists them")
            return None
        found = [each for each in there.items if each.name == wanted]
        if not found:
            names = [each.name for each in there.items]
            self.missing("source.item", "item", wanted, names, f"`govc library.ls /{library}/` lists them")
            return None
        if len(found) > 1:
            self.ambiguous("source.library", "content library", library, [f"{library}/{each.name}" for each in found])
            return None
        return self.item_template(spec, found[0], inventory)

    def item_template(self, spec: ClusterSpec, item: LibraryItem, inventory: Inventory) -> Vm | None:
        vm = inventory.vm(item.vm) if item.vm is not None else None
        if item.package is not None:
            return find_deployed(spec, item.package, inventory)
        if item.type != VM_TEMPLATE:
            self._refuse(
                "source.item",
                f"`{spec.source}` is of type `{item.type}`: neither a VM template nor an OVF template",
                f"`govc library.ls -l /{spec.source.library}/` lists items with their types",
                code="source.not-a-template",
            )
        elif vm is None:
            self._refuse(
                "source.item",
                f"the VM template of `{spec.source}` is not in data centre `{inventory.datacenter}`, or hidden",
                "set location.datacenter to where it is, or give the account System.Read on the template",
                code="site.not-found",
            )
        return vm

    def networks(self, spec: ClusterSpec, inventory: Inventory) -> dict[str, Network]:
        """Return the networks by the names the spec uses; a distributed switch's name may stand before a slash."""
        wanted = {node.port_group: f"nodes.{node.name}.network.port_group" for node in reversed(spec.nodes)}
        for node in reversed(spec.nodes):
            if node.nic.port_group is not None and node.nic.kind.spec.exists:
                wanted[node.nic.port_group] = f"nodes.{node.name}.nic.port_group"

        def path(network: Network) -> str:
            return f"{network.switch}/{network.name}" if network.switch else network.name

        found = {
            name: self.one(key, "port group", name, inventory.networks, path) for name, key in sorted(wanted.items())
        }
        return {name: network for name, network in found.items() if network is not None}

    def nic_models(self, spec: ClusterSpec, hosts: Sequence[Host]) -> None:
        """Report the models that no host has beside what else is wrong; alone, each host has its reason."""
        there = [nic.name for host in hosts for nic in host.nics]
        wanted = {
            node.nic.model: f"nodes.{node.name}.nic.model" for node in reversed(spec.nodes) if node.nic.is_function
        }
        for model, key in sorted(wanted.items()):
            if there and not any(is_model(name, model) for name in there):
                self.missing(key, "NIC", model, there)

    def error(self, inventory: Inventory) -> NotPossible:
        first = next((each for each in self.problems if each.code == "site.not-found"), self.problems[0])
        if len(self.problems) == 1:
            return NotPossible(reason=first.message, code=first.code, target=first.target, hint=first.hint)
        return NotPossible(
            f"{len(self.problems)} names do not fit data centre `{inventory.datacenter}`",
            code=first.code,
            target=first.target,
            hint=first.hint,
            details=tuple(map(str, self.problems)),
        )

    def _refuse(self, key: str, message: str, hint: str, *, code: str) -> None:
        self.problems.append(Diagnostic(severity=Severity.ERROR, code=code, target=key, message=message, hint=hint))


def names_host(name: str, host: Host) -> bool:
    """Return whether a name or glob means this host, by its full name or by what stands before the first dot."""
    wanted, full = name.casefold(), host.name.casefold()
    return fnmatchcase(full, wanted) or fnmatchcase(full.partition(".")[0], wanted)


def hosts_called(glob: str, inventory: Inventory) -> tuple[Host, ...]:
    """Return the hosts that a name or glob means. NotPossible `site.not-found`, with those there are, when none."""
    found = tuple(host for host in inventory.hosts if names_host(glob, host))
    if not found and inventory.hosts:
        raise NotPossible(
            f"no host is called `{glob}`",
            code="site.not-found",
            target=glob,
            hint=f"there are {_join_names(sorted(host.name for host in inventory.hosts))}",
        )
    return found


def _matching_names(name: str, things: Sequence[T], path: Callable[[T], str]) -> list[T]:
    exact = [each for each in things if _tidy(path(each)) == _tidy(name)]
    return exact or [each for each in things if _ends(path(each), name)]


def _ends(path: str, name: str) -> bool:
    """Return whether an inventory path is this name, or ends in it."""
    return f"/{_tidy(path)}".endswith(f"/{_tidy(name)}")


def _tidy(path: str) -> str:
    return "/".join(part for part in path.split("/") if part)


def _last_part(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]


def _join_names(names: Sequence[str]) -> str:
    return list_first([f"`{name}`" for name in names], _SHOWN)
