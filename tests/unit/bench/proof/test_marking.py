"""Whether RDMA was in the lossless priority, by what a node's port counted."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.unit.bench import jobs
from vsphere_ml.bench.model import rank_log
from vsphere_ml.bench.model.record import Marking
from vsphere_ml.bench.model.transports import Transport
from vsphere_ml.bench.proof import marking

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vsphere_ml.bench.model.job import Job
    from vsphere_ml.bench.model.record import PriorityCount

GB = 10**9


def job(transport: Transport) -> Job:
    made = jobs.job()
    return replace(made, configuration=replace(made.configuration, transport=transport))


def counted(sent: Mapping[str, int], rdma: int, transport: Transport = Transport.ROCE) -> tuple[PriorityCount, ...]:
    """Return the counts of a node whose only port sent so much by priority, and so much RDMA."""
    ports = {"eth1": {"device": "mlx5_0", "sent": sent}}
    lines = (
        jobs.place(0),
        jobs.told(kind="priorities", ports=ports),
        jobs.told(kind="traffic", bytes={"mlx5_0": rdma}, peers=[]),
    )
    return marking.count(job(transport), rank_log.read({"node-1": "\n".join(lines)}), 3)


@pytest.mark.parametrize(
    ("sent", "rdma", "verdict"),
    [
        ({"0": GB // 100, "3": 10 * GB}, 10 * GB, Marking.MARKED),
        ({"0": 10 * GB, "3": 0}, 10 * GB, Marking.UNMARKED),
        ({"0": 10 * GB, "3": GB}, 10 * GB, Marking.UNMARKED),
        ({}, 10 * GB, Marking.NOT_KNOWN),  # no counters of priorities
        ({"0": 0, "3": 0}, 10 * GB, Marking.NOT_KNOWN),  # a virtual function, which shows them empty
        ({"0": 10 * GB}, 0, Marking.NOT_KNOWN),  # no RDMA
    ],
)
def test_bytes_by_priority_decide(sent: dict[str, int], rdma: int, verdict: Marking) -> None:
    (each,) = counted(sent, rdma)
    assert (each.verdict, each.node, each.interface, each.priority) == (verdict, "node-1", "eth1", 3)
    codes = {Marking.MARKED: [], Marking.UNMARKED: [marking.UNMARKED], Marking.NOT_KNOWN: [marking.NOT_KNOWN]}
    assert [remark.code for remark in marking.diagnose([each])] == codes[verdict]


def test_that_nobody_knows_is_said_once() -> None:
    (each,) = counted({}, GB)
    assert len(marking.diagnose([each, replace(each, node="node-2")])) == 1


def test_nothing_is_counted_of_tcp_or_where_no_priority_is_asked_for() -> None:
    assert counted({"3": GB}, GB, Transport.TCP) == ()
    assert marking.count(job(Transport.ROCE), (), None) == ()
