"""The anti-affinity rule that keeps spread nodes apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.core.model.spec import Spread
from vsphere_ml.core.plan.changes import DeleteRule, MakeRule

if TYPE_CHECKING:
    from vsphere_ml.core.model.inventory import AntiAffinityRule, ComputeCluster
    from vsphere_ml.core.model.placement import Placement
    from vsphere_ml.core.model.spec import ClusterSpec


def rule_name(cluster: str) -> str:
    return f"vsml-{cluster}"


def rule_changes(spec: ClusterSpec, placement: Placement) -> tuple[MakeRule | DeleteRule, ...]:
    """Return what brings the rule to the placements; one that would keep nodes from starting is taken away."""
    cluster = placement.resolved.cluster
    seen = existing_rule(spec.name, cluster)
    if without_rule(spec, placement) is not None:
        return () if seen is None else (DeleteRule(cluster=cluster.ref, name=seen.name, key=seen.key),)
    if seen is not None and seen.enabled and seen.vms == _refs(placement):
        return ()
    names = tuple(
        sorted(
            (
                *(node_placement.node.name for node_placement in placement.placements),
                *(vm.name for vm in placement.others),
            )
        )
    )
    return (MakeRule(cluster=cluster.ref, name=rule_name(spec.name), vms=names, key=seen.key if seen else None),)


def without_rule(spec: ClusterSpec, placement: Placement) -> str | None:
    """Return why no rule is made, in words, or None when one is."""
    hosts = {*(node_placement.host for node_placement in placement.placements), *(vm.host for vm in placement.others)}
    nodes = placement.node_count
    if spec.spread is not Spread.SPREAD or not spec.anti_affinity:
        return "none was asked for"
    if nodes == 1:
        return "there is one node"
    if len(hosts) < nodes:
        return f"{nodes} nodes share {len(hosts)} hosts"
    if placement.resolved.cluster.drs is None:
        return f"DRS is off in cluster {placement.resolved.cluster.name}"
    return None


def existing_rule(cluster_name: str, cluster: ComputeCluster) -> AntiAffinityRule | None:
    return next((rule for rule in cluster.rules if rule.name == rule_name(cluster_name)), None)


def _refs(placement: Placement) -> frozenset[str] | None:
    """Return the VMs of all nodes, or None while some of them do not exist."""
    refs: list[str | None] = [
        node_placement.existing.ref if node_placement.existing else None for node_placement in placement.placements
    ]
    refs.extend(vm.ref for vm in placement.others)
    return None if None in refs else frozenset(ref for ref in refs if ref is not None)
