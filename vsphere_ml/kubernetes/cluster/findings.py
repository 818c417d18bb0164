"""What was found of a cluster, one fact each; flows make evidence of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from vsphere_ml.core.diagnostics import Severity


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFinding:
    """One fact: how it is, what was seen, and what to type to see it again."""

    fact: str
    severity: Severity
    message: str
    command: str
