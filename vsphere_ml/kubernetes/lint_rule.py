"""One rule for a kind of manifest, and what breaks it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from vsphere_ml.core.diagnostics import Severity
    from vsphere_ml.kubernetes.manifest import Path


@dataclass(frozen=True, slots=True)
class Violation:
    """What is wrong, where, and what to write instead."""

    path: Path
    message: str
    hint: str = ""


# Of the kind that the rule's table is for.
Find: TypeAlias = "Callable[[Any], Iterator[Violation]]"


@dataclass(frozen=True, slots=True)
class LintRule:
    """ERROR is refused by the API server or the operator, or runs as something else; WARNING is a trap."""

    id: str
    severity: Severity
    source: str  # who says so: a file of the operator, or an issue
    find: Find
