"""By which plain tool the links are measured that a transport goes over, and why they cannot be where they cannot."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.bench.probe import perftest, rdma
from vsphere_ml.bench.probe.perftest import End
from vsphere_ml.core.diagnostics import Diagnostic
from vsphere_ml.core.errors import NotPossible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vsphere_ml.bench.model.job import RunIn
    from vsphere_ml.bench.model.transports import Transport
    from vsphere_ml.bench.probe.survey import Surveyed
    from vsphere_ml.core.model.guest import Peer


def missing_tool(transport: Transport, surveyed: Sequence[Surveyed]) -> str | None:
    """Return in words what is missing in guests for this transport's tool; None when the links can be measured."""
    answers = ((each.node, _missing_tool(transport, each)) for each in surveyed)
    of = {node: why for node, why in answers if why}
    return f"{', '.join(of)}: {next(iter(of.values()))}" if of else None


def _missing_tool(transport: Transport, each: Surveyed) -> str | None:
    if not transport.spec.rdma:
        return None if each.iperf3 else "no iperf3"
    ports = rdma.ports_of_transport(each.ports, transport)
    if not ports:
        return "no PVRDMA device" if transport.spec.paravirtual else "no RDMA device"
    if not rdma.rails(ports):
        return "no active RDMA port with a RoCE v2 GID of an IPv4 address"
    if each.perftest is None:
        return "no ib_write_bw"
    return _missing_gpu_support(each, each.perftest) if transport.spec.gpu_memory else None


def _missing_gpu_support(each: Surveyed, tool: perftest.Perftest) -> str | None:
    if not each.gpus:
        return "no GPU"
    if not tool.cuda:
        return "an ib_write_bw that was built without CUDA"
    if each.peermem or (each.dma_buf and tool.dma_buf):
        return None
    return "neither nvidia-peermem nor DMA-BUF in the driver and in ib_write_bw"


def ends(node: Peer, each: Surveyed, transport: Transport, within: RunIn) -> tuple[End, ...]:
    """Return a node as the end of a link by each of its ports; none where the tool is missing."""
    if each.perftest is None:
        return ()
    return tuple(
        End(
            node=node,
            tool=each.perftest,
            rail=rail,
            within=within,
            gpu=0 if transport.spec.gpu_memory else None,
            dma_buf=not each.peermem,
        )
        for rail in rdma.rails(rdma.ports_of_transport(each.ports, transport))
    )


def not_measured(transport: Transport, why: str) -> Diagnostic:
    """Return what the record says of links that nobody measured."""
    return Diagnostic(
        code="bench.not-measured",
        target=transport.spec.link_tool,
        message=f"not measured: {why}",
        hint=transport.spec.install,
    )


def no_tool(transport: Transport, why: str, node: str) -> NotPossible:
    """Return the error for links that are to be measured where guests do not have what it takes."""
    return NotPossible(
        f"the links cannot be measured by {transport.spec.link_tool}: {why}",
        code="bench.no-tool",
        target=node,
        hint=transport.spec.install,
    )
