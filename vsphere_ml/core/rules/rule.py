"""A rule, and what it means to break one."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from vsphere_ml.core.diagnostics import Severity
    from vsphere_ml.core.model.inventory import Host
    from vsphere_ml.core.model.placement import NodePlacement
    from vsphere_ml.core.model.spec import ClusterSpec, NodeSpec
    from vsphere_ml.core.nodes.requirements import NodeRequirements
    from vsphere_ml.core.rules.reasons import Reason


@dataclass(frozen=True, slots=True)
class Words:
    """What breaks a rule, in words, and the key of the node's table that says so."""

    text: str
    key: tuple[str, ...] = ()


OfNode: TypeAlias = "Callable[[NodeSpec], Iterator[Words]]"
OfCluster: TypeAlias = "Callable[[ClusterSpec], Iterator[Words]]"
OfHost: TypeAlias = "Callable[[Host, NodeRequirements], Iterator[Reason]]"
OfSource: TypeAlias = "Callable[[str, NodeSpec], Iterator[Words]]"  # the source's guestId
OfPlacement: TypeAlias = "Callable[[NodePlacement, Host], Iterator[Words]]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One row. `kept` says in words who keeps it; the predicates are those of this table, beside that."""

    id: str
    number: int
    severity: Severity
    summary: str
    sources: tuple[str, ...]  # keys of SOURCES; none: it is our own reasoning, and `says` says so
    enforced_by: str
    versions: str = "all"
    of_node: OfNode | None = None
    of_cluster: OfCluster | None = None
    of_host: OfHost | None = None
    of_source: OfSource | None = None
    of_placement: OfPlacement | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleViolation:
    """A rule that one node breaks by itself, in words how, and the key of its table that says so."""

    rule: str
    words: str
    key: tuple[str, ...] = ()
