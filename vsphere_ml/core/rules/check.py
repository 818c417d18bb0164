"""Holds wishes, hosts and placements against the table."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from vsphere_ml.core.rules.rule import RuleViolation, Severity
from vsphere_ml.core.rules.table import RULES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from vsphere_ml.core.model.inventory import Host, Inventory, Vm
    from vsphere_ml.core.model.placement import Placement
    from vsphere_ml.core.model.spec import ClusterSpec, NodeSpec
    from vsphere_ml.core.nodes.requirements import NodeRequirements
    from vsphere_ml.core.rules.reasons import Reason
    from vsphere_ml.core.rules.rule import Rule, Words

_OF_NODES = tuple((rule, rule.of_node) for rule in RULES if rule.of_node is not None)
_ERRORS_OF_NODES = tuple((rule, of_this) for rule, of_this in _OF_NODES if rule.severity is Severity.ERROR)
_OF_HOSTS = tuple((rule.id, rule.of_host) for rule in RULES if rule.of_host is not None)


def of_node(node: NodeSpec) -> Iterator[RuleViolation]:
    """Yield the rules that a node's wish breaks by itself."""
    return _hold(node, _OF_NODES)


def errors_of_node(node: NodeSpec) -> Iterator[RuleViolation]:
    """Yield those of them that no plan can be made with."""
    return _hold(node, _ERRORS_OF_NODES)


def _hold(
    node: NodeSpec, rules: Iterable[tuple[Rule, Callable[[NodeSpec], Iterable[Words]]]]
) -> Iterator[RuleViolation]:
    for rule, of_this in rules:
        for each in of_this(node):
            yield _violation(rule, each, (node.name,))


def of_file(spec: ClusterSpec) -> tuple[RuleViolation, ...]:
    """Return the rules that a cluster file breaks, errors first; nodes that break one alike are told together."""
    of_cluster = (
        _violation(rule, each, tuple(node.name for node in spec.nodes))
        for rule in RULES
        if rule.of_cluster is not None
        for each in rule.of_cluster(spec)
    )
    return _merge_diagnostics((*(each for node in spec.nodes for each in of_node(node)), *of_cluster))


def of_host(host: Host, requirements: NodeRequirements) -> Iterator[Reason]:
    """Yield why rules keep a wish from a host."""
    for rule, against in _OF_HOSTS:
        yield from (replace(reason, rule=rule) for reason in against(host, requirements))


def of_source(source: Vm, spec: ClusterSpec) -> tuple[RuleViolation, ...]:
    """Return the rules that clones of this source would break, by the system that vCenter has it for."""
    guest = source.settings.guest_id if source.settings is not None else ""
    if not guest:
        return ()
    return _merge_diagnostics(
        _violation(rule, each, (node.name,))
        for node in spec.nodes
        for rule in RULES
        if rule.of_source is not None
        for each in rule.of_source(guest, node)
    )


def check_placements(placement: Placement, inventory: Inventory) -> tuple[RuleViolation, ...]:
    """Return the rules that placements break."""
    hosts = {host.ref: host for host in inventory.hosts}
    return _merge_diagnostics(
        _violation(rule, each, (node_placement.node.name,))
        for node_placement in placement.placements
        for rule in RULES
        if rule.of_placement is not None
        for each in rule.of_placement(node_placement, hosts[node_placement.host])
    )


def notes(spec: ClusterSpec, placement: Placement, inventory: Inventory) -> Iterator[str]:
    """Yield what a person should know before the plan is carried out, with the rule it comes from."""
    diagnostics = (each for each in of_file(spec) if each.severity is not Severity.INFO)
    for each in (*diagnostics, *check_placements(placement, inventory)):
        yield f"{', '.join(each.nodes)}: {each.words} (rule {each.rule})"


def _violation(rule: Rule, words: Words, nodes: tuple[str, ...]) -> RuleViolation:
    return RuleViolation(rule=rule.id, severity=rule.severity, nodes=nodes, words=words.text, key=words.key)


def _merge_diagnostics(diagnostics: Iterable[RuleViolation]) -> tuple[RuleViolation, ...]:
    alike: dict[tuple[str, str], list[RuleViolation]] = {}
    for each in diagnostics:
        alike.setdefault((each.rule, each.words), []).append(each)
    merged = [
        RuleViolation(
            rule=same[0].rule,
            severity=same[0].severity,
            nodes=tuple(dict.fromkeys(name for each in same for name in each.nodes)),
            words=same[0].words,
            key=same[0].key,
        )
        for same in alike.values()
    ]
    order = list(Severity)
    return tuple(sorted(merged, key=lambda each: order.index(each.severity)))
