"""What UCX says that MPI's messages went by: a line for each kind of endpoint, at its log level `info`.

`[1701292112.829711] [node-1:162239:0] ucp_worker.c:1855 UCX INFO 0x100b240 inter-node cfg#3 tag(rc_mlx5/mlx5_0:1)`: the
operations, and for each of its lanes the transport and the device.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from vsphere_ml.bench.model.record import Path, Proof, Verdict
from vsphere_ml.bench.proof.paths import PATH

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from vsphere_ml.bench.model.job import Job
    from vsphere_ml.bench.model.rank_log import RankLog

_LINE = re.compile(
    r"\[(?P<host>[\w.-]{1,253}):\d+\s*(?::\d+)?\s*\]\s+ucp_worker\.c:\d+\s+UCX\s+INFO\s+\S+ inter-node cfg#\d+ "
    r"(?P<lanes>[^\n]+)"
)
_LANE = re.compile(r"(?P<by>[a-z][a-z0-9_]*)/(?P<device>[\w.:-]+)")
_RDMA = ("rc", "dc", "ud")  # rc_verbs, rc_mlx5, dc_mlx5, ud_verbs, ...


def of_ucx(log: str) -> tuple[Path, ...]:
    """Return each lane between nodes as a process of a node logged it; UCX does not name the other end."""
    return tuple(dict.fromkeys(_lanes(log)))


def _lanes(log: str) -> Iterator[Path]:
    for line in _LINE.finditer(log):
        host = line["host"].partition(".")[0]
        for lane in _LANE.finditer(line["lanes"]):
            yield Path(
                channel="ucx",
                sender=host,
                receiver="",
                carrier=f"UCX/{lane['by']}",
                evidence=line.group(),
                host=host,
                nic=lane["device"],
            )


def prove_ucx(job: Job, logs: Sequence[RankLog], lanes: Sequence[Path]) -> Proof | None:
    """Return whether MPI went by RDMA between nodes; None on one node. Unknown where a node logged nothing."""
    if len(job.nodes) < 2:  # noqa: PLR2004 - nobody to talk to
        return None
    other = sorted({f"{each.carrier} on {each.host}" for each in lanes if not _is_rdma(each)})
    if other:
        evidence = f"{job.configuration.transport} was asked for, and UCX went by {', '.join(other)}"
        return Proof(name=PATH, verdict=Verdict.NO, evidence=evidence)
    silent = sorted({each.hostname.partition(".")[0] for each in logs} - {each.host for each in lanes})
    if silent:
        evidence = f"UCX logged no endpoint between nodes on {', '.join(silent)}"
        return Proof(name=PATH, verdict=Verdict.UNKNOWN, evidence=evidence)
    by = ", ".join(sorted({f"{each.carrier} on {each.nic}" for each in lanes}))
    return Proof(name=PATH, verdict=Verdict.YES, evidence=f"every node went by {by}")


def _is_rdma(lane: Path) -> bool:
    return lane.carrier.removeprefix("UCX/").startswith(_RDMA)
