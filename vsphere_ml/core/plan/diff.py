"""Compares a placement with what exists. Arithmetic on values: nothing is read, nothing is done."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from vsphere_ml.core.model.inventory import EthernetCard
from vsphere_ml.core.model.marks import is_marked
from vsphere_ml.core.model.spec import CloneKind, Spread
from vsphere_ml.core.nodes.firstboot import ADDRESS_KEY, NOT_REPORTED
from vsphere_ml.core.plan.anti_affinity import rule_changes, without_rule
from vsphere_ml.core.plan.changes import (
    AttachDevices,
    CloneVm,
    CreateFolder,
    CustomizeGuest,
    DeployTemplate,
    Marks,
    MarkVm,
    MoveToFolder,
    NewMac,
    PowerOff,
    PowerOn,
    SetSettings,
    UpgradeHardware,
)
from vsphere_ml.core.plan.feasibility import space_notes
from vsphere_ml.core.plan.findings import findings
from vsphere_ml.core.plan.network import fabric_findings, fabric_notes, switch_changes
from vsphere_ml.core.plan.plan import Plan, Stage
from vsphere_ml.core.plan.settings_drift import list_drift
from vsphere_ml.core.plan.vm_devices import difference, duplicate_macs, name
from vsphere_ml.core.plan.vm_location import moves
from vsphere_ml.core.rules import check
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from vsphere_ml.core.model.inventory import Inventory, Vm
    from vsphere_ml.core.model.placement import NodePlacement, Placement
    from vsphere_ml.core.model.spec import ClusterSpec
    from vsphere_ml.core.nodes.firstboot import FirstBoot
    from vsphere_ml.core.plan.changes import Change

STAGES = (
    "switch",
    "folder",
    "template",
    "clone",
    "mark",
    "move",
    "power off",
    "hardware version",
    "settings",
    "devices",
    "network",
    "customization",
    "rule",
    "power on",
)


def diff(
    spec: ClusterSpec, placement: Placement, inventory: Inventory, first_boots: Mapping[str, FirstBoot] | None = None
) -> Plan:
    """Return what turns the site into the placement; an empty plan when it already is.

    `first_boots` are the first-boot data of new nodes' guests, by node.
    """
    work = _Work(first_boots=first_boots or {})
    for raised in switch_changes(spec, placement, inventory):
        work.add("switch", raised)
    for move in moves(spec, placement, inventory):
        work.add("move", move)
    work.folder(spec, placement, inventory)
    work.template(spec, placement)
    doubles = _doubles(placement, inventory)
    for node_placement in placement.placements:
        if node_placement.existing is None:
            work.new(spec, placement, node_placement)
        else:
            work.top_up(
                spec, placement, node_placement, node_placement.existing, doubles.get(node_placement.node.name, ())
            )
    for change in rule_changes(spec, placement):
        work.add("rule", change)
    return Plan(
        stages=work.stages(),
        placements=placement.placements,
        notes=(
            *placement.notes,
            *check.notes(spec, placement, inventory),
            *space_notes(spec, placement, inventory),
            *_rule_note(spec, placement),
            *fabric_notes(spec, placement, inventory),
            *_address_note(placement, work.first_boots),
        ),
        diagnostics=(*findings(spec, placement, inventory), *fabric_findings(spec, placement, inventory)),
    )


@dataclass(slots=True)
class _Work:
    """Changes, by the stage they belong to."""

    first_boots: Mapping[str, FirstBoot]
    changes: dict[str, list[Change]] = field(default_factory=lambda: {title: [] for title in STAGES})

    def add(self, stage: str, change: Change) -> None:
        self.changes[stage].append(change)

    def stages(self) -> tuple[Stage, ...]:
        return tuple(Stage(title=title, changes=tuple(changes)) for title, changes in self.changes.items() if changes)

    def folder(self, spec: ClusterSpec, placement: Placement, inventory: Inventory) -> None:
        moves = any(isinstance(change, MoveToFolder) for change in self.changes["move"])
        if moves or any(node_placement.existing is None for node_placement in placement.placements):
            for path in _missing_folders(placement.resolved.folder, inventory):
                self.add("folder", CreateFolder(path=path, marks=Marks(cluster=spec.name)))

    def template(self, spec: ClusterSpec, placement: Placement) -> None:
        """Plan the deployment of a template that is not there yet, where the first node to be cloned from it goes."""
        resolved = placement.resolved
        new = next((each for each in placement.placements if each.existing is None), None)
        if new is None or resolved.source.ref or resolved.package is None:
            return
        network = resolved.networks[new.node.port_group]
        self.add(
            "template",
            DeployTemplate(
                name=resolved.source.name,
                marks=Marks(cluster=spec.name, node=resolved.source.name),
                package=resolved.package,
                host=new.host,
                host_name=new.host_name,
                pool=resolved.pool,
                datastore=resolved.datastore.ref,
                datastore_name=resolved.datastore.name,
                folder=resolved.folder,
                network=network.ref,
                network_name=network.name,
            ),
        )

    def new(self, spec: ClusterSpec, placement: Placement, node_placement: NodePlacement) -> None:
        """Plan a node that does not exist: clone, what the clone cannot carry, power on."""
        resolved, vm = placement.resolved, node_placement.node.name
        full = resolved.source.hardware_version >= node_placement.target.hardware_version
        linked = spec.source.clone is CloneKind.LINKED
        self.add(
            "clone",
            CloneVm(
                vm=vm,
                marks=Marks(cluster=spec.name, node=vm),
                source=resolved.source.ref,
                source_name=resolved.source.name,
                snapshot=resolved.source.snapshot if linked else None,
                host=node_placement.host,
                host_name=node_placement.host_name,
                pool=resolved.pool,
                datastore=resolved.datastore.ref,
                datastore_name=resolved.datastore.name,
                folder=resolved.folder,
                target=node_placement.target,
                devices=full,
                first_boot=self.first_boots.get(vm),
            ),
        )
        if not full:
            version, was = node_placement.target.hardware_version, resolved.source.hardware_version
            self.add("hardware version", UpgradeHardware(vm=vm, version=version, was=was))
            self.add("devices", AttachDevices(vm=vm, add=node_placement.target.devices))
        self.customize(vm)
        self.add("power on", PowerOn(vm=vm))

    def customize(self, vm: str) -> None:
        """Plan what vCenter gives a guest before its first boot, once its NICs are there."""
        first_boot = self.first_boots.get(vm)
        if first_boot is not None and first_boot.customization is not None:
            self.add("customization", CustomizeGuest(vm=vm, customization=first_boot.customization))

    def top_up(
        self,
        spec: ClusterSpec,
        placement: Placement,
        node_placement: NodePlacement,
        vm: Vm,
        doubles: tuple[EthernetCard, ...],
    ) -> None:
        """Plan what is missing on an existing node, off while it is changed and on at the end."""
        if not is_marked(vm, spec.name):
            self.add("mark", MarkVm(vm=vm.name, marks=Marks(cluster=spec.name, node=vm.name)))
        steps = list(_reconfigure(node_placement, vm, placement.resolved.source, doubles))
        stops = any(_needs_power_off(change) for _, change in steps)
        if stops and vm.powered_on:
            self.add("power off", PowerOff(vm=vm.name))
        for stage, change in steps:
            self.add(stage, change)
        if vm.settings is not None and vm.settings.extra_config.get(ADDRESS_KEY) == NOT_REPORTED:
            self.customize(vm.name)
        if stops or not vm.powered_on:
            self.add("power on", PowerOn(vm=vm.name))


def _missing_folders(path: str, inventory: Inventory) -> Iterator[str]:
    """Yield the folders of a path that do not exist, parents first."""
    there = {folder.path for folder in inventory.folders}
    names = path.split("/") if path else []
    yield from (parent for depth in range(len(names)) if (parent := "/".join(names[: depth + 1])) not in there)


def _reconfigure(
    placement: NodePlacement, vm: Vm, source: Vm, doubles: tuple[EthernetCard, ...]
) -> Iterator[tuple[str, UpgradeHardware | SetSettings | AttachDevices | NewMac]]:
    if vm.settings is None:
        return
    if vm.hardware_version < placement.target.hardware_version:
        version = placement.target.hardware_version
        yield "hardware version", UpgradeHardware(vm=vm.name, version=version, was=vm.hardware_version)
    missing = list_drift(vm.settings, placement.target)
    if missing:
        yield "settings", SetSettings(vm=vm.name, target=placement.target, drift=missing)
    devices = difference(vm.settings, placement.target.devices, source.settings)
    if devices:
        keys, names = tuple(each.key for each in devices.remove), tuple(name(each) for each in devices.remove)
        yield "devices", AttachDevices(vm=vm.name, add=devices.add, remove=keys, remove_names=names)
    for card in doubles:
        if card not in devices.remove:
            yield "network", NewMac(vm=vm.name, key=card.key, mac=card.mac)


def _needs_power_off(change: Change) -> bool:
    return not (isinstance(change, SetSettings) and change.online)


def _doubles(placement: Placement, inventory: Inventory) -> Mapping[str, tuple[EthernetCard, ...]]:
    """Return our nodes' NICs whose MAC somebody else has; of two nodes the running one keeps it, else the first."""
    ours = {node_placement.existing.ref for node_placement in placement.placements if node_placement.existing}
    others = [vm for vm in inventory.vms if vm.settings is not None and vm.ref not in ours]
    nodes = [node_placement.existing for node_placement in placement.placements if node_placement.existing]
    first = [*others, *sorted(nodes, key=lambda vm: (not vm.powered_on, vm.name))]
    cards = ((vm, card) for vm in first if vm.settings for card in vm.settings.devices)
    doubles: dict[str, tuple[EthernetCard, ...]] = {}
    named = ((str(vm.ref), card) for vm, card in cards if isinstance(card, EthernetCard))
    by_ref = {str(vm.ref): vm.name for vm in nodes}
    for ref, card in duplicate_macs(named):
        if ref in by_ref:
            doubles[by_ref[ref]] = (*doubles.get(by_ref[ref], ()), card)
    return doubles


def _address_note(placement: Placement, first_boots: Mapping[str, FirstBoot]) -> Iterator[str]:
    """Yield that nobody gives new guests the static addresses of the file."""
    new = (node_placement.node for node_placement in placement.placements if node_placement.existing is None)
    if any(node.address is not None and node.name not in first_boots for node in new):
        yield (
            "nobody tells the new guests their static addresses, since the file has no [guest] with a first boot: "
            "they come up as their template does"
        )


def _rule_note(spec: ClusterSpec, placement: Placement) -> Iterator[str]:
    why = without_rule(spec, placement)
    if why is not None and spec.spread is Spread.SPREAD and spec.anti_affinity and placement.node_count > 1:
        yield f"no anti-affinity rule: {why}"
