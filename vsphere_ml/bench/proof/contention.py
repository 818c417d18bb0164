"""What each node's CPUs were kept from during a launch: what its guest counted, and what vCenter did."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.bench.model.record import CpuContention

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from vsphere_ml.bench.model.job import Job
    from vsphere_ml.bench.model.rank_log import RankLog
    from vsphere_ml.core.model.cpu_times import CpuTimes


def contention(job: Job, logs: Sequence[RankLog], by_vcenter: Mapping[str, CpuTimes]) -> tuple[CpuContention, ...]:
    """Return what is known of each node, in the order of nodes; those of which nothing is known are left out."""
    of_guests = {each.node: each.contention for each in logs if each.contention}
    return tuple(
        CpuContention(
            node=node.name,
            steal=of_guests.get(node.name, {}).get("steal"),
            pressure=of_guests.get(node.name, {}).get("pressure"),
            ready=by_vcenter[node.name].ready if node.name in by_vcenter else None,
            costop=by_vcenter[node.name].costop if node.name in by_vcenter else None,
        )
        for node in job.nodes
        if node.name in of_guests or node.name in by_vcenter
    )
