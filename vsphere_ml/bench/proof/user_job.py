"""What can be proven of a program that knows nothing of vsml: where its ranks ran, and what carried their bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.bench.model import rank_log
from vsphere_ml.bench.proof import channels, paths, ranks

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vsphere_ml.bench.model.job import Job
    from vsphere_ml.bench.model.record import Proof


def prove(job: Job, texts: Mapping[str, str], log: str) -> tuple[Proof, ...]:
    """Return the proofs; `texts` has the lines of each node's ranks, `log` what NCCL logged.

    That ranks stayed in sync, only a program that hashes its weights can show.
    """
    logs = rank_log.read(texts)
    went = channels.of_nccl(log) or paths.of_sockets(job, logs)
    by = paths.proof(job, logs, went, (), log)
    return tuple(each for each in (ranks.placement(job, logs), ranks.in_sync(logs), by) if each is not None)
