"""What is to be known of a transport, and the names by which NCCL logs what a channel went by."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

SOCKET, IB, IB_GPUDIRECT = "NET/Socket", "NET/IB", "NET/IB/GDRDMA"
UCX_RDMA = "rc,sm,self"  # reliable connections by any verbs, and what stays on a node
INSTALL_PERFTEST = 'vsml run --sudo -- apt-get install -y perftest; `vsml configure` with the playbook "roce"'


@dataclass(frozen=True, slots=True, kw_only=True)
class TransportSpec:
    """A transport as data."""

    rdma: bool  # the carrier: RDMA ports, with their packets, rates and MTU; else TCP over the job's own interface
    gpu_memory: bool = False  # from GPU memory, past the host's; else from host memory, which needs no GPU
    paravirtual: bool = False  # by RDMA ports of PVRDMA adapters alone; else by those of a NIC's functions
    ucx: str = ""  # what UCX is restricted to where MPI carries it (UCX_TLS); empty: MPI cannot
    nccl: Mapping[str, str]  # variables that make NCCL take it
    carriers: frozenset[str]  # by which NCCL's channels between nodes may go
    link_layer: str = ""  # as NCCL names that of a port, where no other is meant
    link_tool: str  # that measures a link without NCCL
    install: str  # what to type where that tool is missing
