"""What a record shows of the way that bytes took between nodes: not the one asked for, or nothing at all."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from vsphere_ml.bench.model.record import VSML, WITHOUT_RANKS, Outcome, Verdict, Workload
from vsphere_ml.bench.model.transports.transport_spec import IB
from vsphere_ml.bench.proof.paths import PATH
from vsphere_ml.core.diagnostics import Diagnostic

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vsphere_ml.bench.model.record import Run


def unproven(run: Run) -> str:
    """Return why it is not known which way a complete launch's bytes took; empty where it is, or none left a node.

    What a tool of the links measured is proven by the tool.
    """
    asked = run.configuration
    if run.outcome is not Outcome.COMPLETE or asked.nodes == 1 or asked.workload in WITHOUT_RANKS:
        return ""
    proof = next((each for each in run.proofs if each.name == PATH), None)
    if proof is not None:
        return proof.evidence if proof.verdict is Verdict.UNKNOWN else ""
    return f"{run.source} tells nothing of it" if asked.transport.spec.rdma else ""


def diagnose_paths(run: Run, where: str) -> Iterator[Diagnostic]:
    """Yield what is wrong with a launch's path, or that it is not known."""
    asked = run.configuration.transport
    # Channels inside a node, and sockets beside NCCL's own, are no way of NCCL's between nodes.
    carriers = Counter(path.carrier for path in run.paths if path.carrier.startswith("NET/"))
    sockets = [each for each in carriers if "Socket" in each]
    if asked.spec.rdma and sockets:
        yield Diagnostic(
            code="bench.wrong-path",
            target=where,
            message=f"{asked} was asked for, and {carriers[sockets[0]]} of {carriers.total()} channels went by sockets",
            hint="`vsml verify`: RDMA device, GID and path MTU of each node",
        )
    elif asked.spec.gpu_memory and set(carriers) == {IB}:
        yield Diagnostic(
            code="bench.no-gpudirect",
            target=where,
            message=f"GPUDirect was asked for, and all {carriers.total()} channels went by host memory",
            hint="`vsml verify`: ATS, nvidia-peermem or DMA-BUF, and the way from GPU to NIC",
        )
    elif run.proof(PATH) is Verdict.NO and run.outcome is Outcome.INVALID:
        yield Diagnostic(code="bench.wrong-path", target=where, message=run.reason or "the bytes went another way")
    elif why := unproven(run):
        yield _unproven(run, where, why)


def _unproven(run: Run, where: str, why: str) -> Diagnostic:
    asked = run.configuration.transport
    who = "was asked for" if run.source == VSML else "is what --transport said"
    return Diagnostic(
        code="bench.path-unproven",
        target=where,
        message=f"{asked} {who}, and that the bytes went by it is not proven: {why}",
        hint=_what_proves(run),
    )


def _what_proves(run: Run) -> str:
    asked = run.configuration
    if not asked.transport.spec.rdma:
        return "RUN.log in the record has what the ranks printed: perhaps they exchanged nothing"
    if run.source != VSML:
        return "import the log of a run with NCCL_DEBUG=INFO: its lines `via NET/` tell"
    if asked.workload is not Workload.NCCL:
        return (
            f"`vsml bench --workload nccl --transport {asked.transport}` tells NCCL's own channels; "
            "without lines of NCCL in RUN.log of the record, Horovod did not use it"
        )
    return "leave NCCL_DEBUG to vsml; RUN.log in the record has all that NCCL logged"
