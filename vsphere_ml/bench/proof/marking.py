"""Whether RDMA packets were in the lossless priority, by the counters of the NICs that nodes have whole.

mlx5 counts bytes by priority on a physical port alone (Linux, Documentation/networking/device_drivers/ethernet/
mellanox/mlx5/counters.rst, priority port counters). A virtual function sees none of them; no document was found that
says where ESXi shows those of its uplinks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.bench.model.record import Marking, PriorityCount
from vsphere_ml.core.diagnostics import Diagnostic

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from vsphere_ml.bench.model.job import Job
    from vsphere_ml.bench.model.rank_log import RankLog

_MOST = 0.5  # of all bytes: what else goes over the port is little beside a benchmark
UNMARKED = "bench.unmarked"
NOT_KNOWN = "bench.marking-not-known"


def count(job: Job, logs: Sequence[RankLog], priority: int | None) -> tuple[PriorityCount, ...]:
    """Return what each node's RDMA ports sent by priority; empty where no priority is asked for, or no RDMA."""
    if priority is None or not job.configuration.transport.spec.rdma:
        return ()
    return tuple(each for log in logs for each in _counts_of_node(log, priority))


def _counts_of_node(log: RankLog, priority: int) -> Iterator[PriorityCount]:
    for name, each in log.priorities.items():
        sent = {int(number): int(value) for number, value in each["sent"].items()}
        rdma = log.sent.get(str(each["device"]), 0)
        yield PriorityCount(
            node=log.node,
            interface=name,
            priority=priority,
            priority_bytes=sent.get(priority, 0),
            counted_bytes=sum(sent.values()),
            rdma_bytes=rdma,
            verdict=judge(sent.get(priority, 0), sum(sent.values()), rdma),
        )


def judge(in_priority: int, counted: int, rdma: int) -> Marking:
    """Return what bytes say: counters that do not show what RDMA sent are of something else."""
    if not rdma or counted < _MOST * rdma:
        return Marking.NOT_KNOWN
    return Marking.MARKED if in_priority >= _MOST * counted else Marking.UNMARKED


def diagnose(counts: Sequence[PriorityCount]) -> tuple[Diagnostic, ...]:
    """Return that packets were not in the priority, by port; and once that it is unknown."""
    unmarked = tuple(
        Diagnostic(
            code=UNMARKED,
            target=each.node,
            message=f"{each.interface} sent {each.priority_bytes} of {each.counted_bytes} bytes in priority "
            f"{each.priority}: what it sent was not lossless",
            hint="[roce] dscp is what NCCL marks packets with; mlnx_qos -i INTERFACE shows which priority that is",
        )
        for each in counts
        if each.verdict is Marking.UNMARKED
    )
    unknown = [each for each in counts if each.verdict is Marking.NOT_KNOWN]
    return (*unmarked, *(_not_known(each) for each in unknown[:1]))


def _not_known(each: PriorityCount) -> Diagnostic:
    return Diagnostic(
        code=NOT_KNOWN,
        target=each.node,
        message=f"whether RDMA was in priority {each.priority} is not known: a virtual function counts no priorities",
        hint="the switch's counters of that priority show it",
    )
