"""Holds specs, hosts and placements against the table."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from vsphere_ml.core.diagnostics import Diagnostic, Severity
from vsphere_ml.core.order import fold_names, list_first
from vsphere_ml.core.rules.rule import RuleViolation
from vsphere_ml.core.rules.table import RULES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from vsphere_ml.core.model.inventory import Host, Inventory, Vm
    from vsphere_ml.core.model.placement import Placement
    from vsphere_ml.core.model.spec import ClusterSpec, NodeSpec
    from vsphere_ml.core.nodes.requirements import NodeRequirements
    from vsphere_ml.core.rules.reasons import Reason
    from vsphere_ml.core.rules.rule import Rule, Words

_SHOWN = 8  # nodes of a rule
_OF_NODES = tuple((rule, rule.of_node) for rule in RULES if rule.of_node is not None)
_ERRORS_OF_NODES = tuple((rule, of_this) for rule, of_this in _OF_NODES if rule.severity is Severity.ERROR)
_OF_HOSTS = tuple((rule.id, rule.of_host) for rule in RULES if rule.of_host is not None)


def errors_of_node(node: NodeSpec) -> Iterator[RuleViolation]:
    """Yield the rules that a node breaks by itself and that no plan can be made with."""
    for rule, of_this in _ERRORS_OF_NODES:
        yield from (RuleViolation(rule=rule.id, words=each.text, key=each.key) for each in of_this(node))


def of_file(spec: ClusterSpec) -> tuple[Diagnostic, ...]:
    """Return the rules that a cluster file breaks, errors first; nodes that break one alike are reported together."""
    nodes = spec.nodes
    of_nodes = ((rule, each, node.name) for node in nodes for rule, of_this in _OF_NODES for each in of_this(node))
    of_cluster = (
        (rule, each, node.name)
        for rule in RULES
        if rule.of_cluster is not None
        for each in rule.of_cluster(spec)
        for node in nodes
    )
    return _diagnostics((*of_nodes, *of_cluster))


def of_host(host: Host, requirements: NodeRequirements) -> Iterator[Reason]:
    """Yield why rules keep a node from a host."""
    for rule, against in _OF_HOSTS:
        yield from (replace(reason, rule=rule) for reason in against(host, requirements))


def of_source(source: Vm, spec: ClusterSpec) -> tuple[Diagnostic, ...]:
    """Return the rules that clones of this source would break, by the system that vCenter has it for."""
    guest = source.settings.guest_id if source.settings is not None else ""
    return _diagnostics(
        (rule, each, node.name)
        for node in spec.nodes
        for rule in RULES
        if guest and rule.of_source is not None
        for each in rule.of_source(guest, node)
    )


def check_placements(placement: Placement, inventory: Inventory) -> tuple[Diagnostic, ...]:
    """Return the rules that placements break."""
    hosts = {host.ref: host for host in inventory.hosts}
    return _diagnostics(
        (rule, each, placed.node.name)
        for placed in placement.placements
        for rule in RULES
        if rule.of_placement is not None
        for each in rule.of_placement(placed, hosts[placed.host])
    )


def notes(spec: ClusterSpec, placement: Placement, inventory: Inventory) -> Iterator[str]:
    """Yield what a person should know before the plan is carried out, with the rule it comes from."""
    of_spec = (each for each in of_file(spec) if each.severity is not Severity.INFO)
    yield from (f"{each} (rule {each.code})" for each in (*of_spec, *check_placements(placement, inventory)))


def _diagnostics(broken: Iterable[tuple[Rule, Words, str]]) -> tuple[Diagnostic, ...]:
    """Return broken rules, each once for all nodes that break it alike: these are its details."""
    alike: dict[tuple[str, str], tuple[Severity, dict[str, None]]] = {}
    for rule, words, node in broken:
        alike.setdefault((rule.id, words.text), (rule.severity, {}))[1][node] = None
    order = list(Severity)
    made = (
        Diagnostic(
            severity=severity,
            code=rule,
            target=list_first(fold_names(nodes), _SHOWN),
            message=text,
            details=tuple(nodes),
        )
        for (rule, text), (severity, nodes) in alike.items()
    )
    return tuple(sorted(made, key=lambda each: order.index(each.severity)))
