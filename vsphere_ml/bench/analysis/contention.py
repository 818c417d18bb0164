"""What CPUs were kept from while a launch ran, and whether it was enough to slow the launch down."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

from vsphere_ml.bench.model import figures
from vsphere_ml.core.diagnostics import Diagnostic
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from vsphere_ml.bench.model.record import CpuContention, Run


@dataclass(frozen=True, slots=True, kw_only=True)
class _ContentionLimit:
    """A figure, and the share of the CPUs' time from which on it is reported."""

    key: str
    most: float
    what: str
    hint: str


_HOST = "fewer virtual CPUs on the host, a CPU reservation, or another host; no CPU limit on the VM"
# Ready time under 5 % of a virtual CPU's is usual, and 10 % hurts (Broadcom KB 387750 has the states); co-stop is rare.
# Pressure counts what waits inside the guest: a job whose own threads are more than its CPUs has some.
LIMITS = (
    _ContentionLimit(key="ready", most=0.05, what="waited for physical CPUs (vCenter's cpu.ready)", hint=_HOST),
    _ContentionLimit(key="costop", most=0.03, what="waited for each other (vCenter's cpu.costop)", hint=_HOST),
    _ContentionLimit(key="steal", most=0.05, what="were not run though they wanted to (steal)", hint=_HOST),
)


def contention_findings(runs: Iterable[Run]) -> Iterator[Diagnostic]:
    """Yield each node whose CPUs were kept from running for more than a small share of their time in most launches."""
    by_node: dict[str, list[CpuContention]] = {}
    for each in (node for run in runs for node in run.contention):
        by_node.setdefault(each.node, []).append(each)
    for node, launches in by_node.items():
        for limit in LIMITS:
            share = _usual_share(launches, limit.key)
            if share is not None and share > limit.most:
                message = f"its CPUs {limit.what} for {figures.percent(share)} of the time"
                yield Diagnostic(code="bench.cpu-contention", target=node, message=message, hint=limit.hint)


def _usual_share(launches: Sequence[CpuContention], key: str) -> float | None:
    shares = [share for each in launches if (share := getattr(each, key)) is not None]
    return statistics.median(shares) if shares else None
