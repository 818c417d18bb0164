"""Whether a launch was what it was meant to be: every rank in its place, and all with the same weights at the end."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from vsphere_ml.bench.model.record import Place, Proof, Verdict, Workload
from vsphere_ml.bench.network.regimes import Regime
from vsphere_ml.bench.probe.machines import Machine
from vsphere_ml.core.diagnostics import Diagnostic

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from vsphere_ml.bench.model.job import Job
    from vsphere_ml.bench.model.rank_log import RankLog

PLACEMENT, IN_SYNC, CLEAN = "placement", "in_sync", "clean"


def placement(job: Job, logs: Sequence[RankLog]) -> Proof:
    """Return whether the ranks ran where they were asked to: each file of a rank lay in some node's guest."""
    found = Counter(each.node for each in logs)
    # What an elastic job has lost is not misplaced.
    asked = {node.name: job.slots for node in job.nodes if found[node.name] or not job.least_nodes}
    wrong = [f"{name}: {found[name]} ranks, {count} asked for" for name, count in asked.items() if found[name] != count]
    sizes = {each.size for each in logs} - {job.ranks}
    if sizes:
        wrong.append(f"a rank counts {min(sizes)} ranks in its job, not {job.ranks}")
    boots = Counter(each.boot_id for each in logs)
    if len(boots) < len(found):
        wrong.append("nodes share a boot id: they are one system under several names")
    where = ", ".join(f"{name}: {'+'.join(str(each.rank) for each in logs if each.node == name)}" for name in asked)
    evidence = "; ".join(wrong) or f"ranks by node: {where}"
    return Proof(name=PLACEMENT, verdict=Verdict.NO if wrong else Verdict.YES, evidence=evidence)


def in_sync(logs: Sequence[RankLog]) -> Proof:
    """Return whether all ranks ended with the same weights."""
    hashes = {each.rank: each.weights for each in logs}
    missing = [rank for rank, weights in hashes.items() if not weights]
    if missing or not hashes:
        evidence = (
            f"no hash of the weights from ranks {', '.join(map(str, missing))}" if missing else "no rank reported one"
        )
        return Proof(name=IN_SYNC, verdict=Verdict.UNKNOWN, evidence=evidence)
    if len(set(hashes.values())) > 1:
        pairs = ", ".join(f"rank {rank}: {weights[:12]}" for rank, weights in hashes.items())
        return Proof(name=IN_SYNC, verdict=Verdict.NO, evidence=f"weights differ after training: {pairs}")
    if not all(each.finite for each in logs):
        evidence = "the weights became NaN or infinite on every rank, so their equal hashes show nothing"
        return Proof(name=IN_SYNC, verdict=Verdict.UNKNOWN, evidence=evidence)
    same = next(iter(hashes.values()))[:12]
    return Proof(name=IN_SYNC, verdict=Verdict.YES, evidence=f"weights {same} on all {len(hashes)} ranks")


def sums(logs: Sequence[RankLog]) -> Proof:
    """Return whether the sums that the workload, or nccl-tests after each size, checked were what they should be."""
    wrong = [f"rank {each.rank}: {what}" for each in logs for what in each.wrong]
    evidence = "; ".join(wrong) or f"no sum that was checked was wrong on {len(logs)} ranks"
    return Proof(name=IN_SYNC, verdict=Verdict.NO if wrong else Verdict.YES, evidence=evidence)


def proofs(job: Job, logs: Sequence[RankLog]) -> tuple[Proof, ...]:
    """Return what can be proven of a launch that ended well."""
    match job.configuration.workload:
        case Workload.TRAIN:
            return (placement(job, logs), in_sync(logs))
        case Workload.REGIMES if Regime(job.configuration.options["regime"]).spec.in_step:
            return (placement(job, logs), in_sync(logs))
        case Workload.ALLREDUCE | Workload.NCCL:
            return (placement(job, logs), sums(logs))
        case _:
            return (placement(job, logs),)


def places(logs: Sequence[RankLog], machines: Mapping[str, Machine]) -> tuple[Place, ...]:
    """Return where each rank ran; `machines` are the nodes' VMs as vCenter has them."""
    return tuple(
        Place(
            rank=each.rank,
            local_rank=each.local_rank,
            node=each.node,
            hostname=each.hostname,
            host=machine.host,
            device=_device(each),
            nic=_nic(each),
            numa_node=machine.numa_node,
            gpu_profile=machine.gpu_profile,
            locality=machine.locality,
        )
        for each in logs
        for machine in (machines.get(each.node, Machine()),)
    )


def clean(found: Mapping[str, int]) -> Proof:
    """Return that no other distributed job ran in the guests; `found` counts what was ended there, by node."""
    ended = ", ".join(f"{count} in {name}" for name, count in found.items() if count)
    before = f"left by an earlier run and ended: {ended}; then " if ended else ""
    evidence = f"{before}no process of a distributed job in {', '.join(found)}"
    return Proof(name=CLEAN, verdict=Verdict.YES, evidence=evidence)


def shared_hosts(job: Job, hosts: Mapping[str, str]) -> tuple[Diagnostic, ...]:
    """Return a remark for each ESXi host that runs several of the job's nodes: their traffic crosses no wire."""
    together: dict[str, list[str]] = {}
    for node in job.nodes:
        if host := hosts.get(node.name):
            together.setdefault(host, []).append(node.name)
    return tuple(
        Diagnostic(
            code="bench.one-host",
            target=host,
            message=f"{', '.join(names)} run on one ESXi host, so what passes between them is not inter-host traffic",
            hint='[cluster] spread = "spread", or hosts for the nodes',
        )
        for host, names in together.items()
        if len(names) > 1
    )


def _device(log: RankLog) -> str:
    """Return the GPU that the rank used, by its UUID where the driver lists it.

    Empty for a program that does not say what it used, in a guest that has GPUs.
    """
    used = str(log.model.get("device", ""))
    if not used.startswith("GPU:"):
        return used.lower() or ("" if log.gpus else "cpu")
    at = int(used.removeprefix("GPU:"))
    return str(log.gpus[at]["uuid"]) if at < len(log.gpus) else used


def _nic(log: RankLog) -> str:
    each = log.interface
    return " ".join(str(part) for part in (each.get("name"), each.get("pci"), each.get("mac")) if part)
