"""What is to be known of a transport, and the names by which NCCL logs what a channel went by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

SOCKET, IB, IB_GPUDIRECT = "NET/Socket", "NET/IB", "NET/IB/GDRDMA"
INSTALL_PERFTEST = 'vsml run --sudo -- apt-get install -y perftest; `vsml configure` with the playbook "roce"'


@dataclass(frozen=True, slots=True, kw_only=True)
class TransportSpec:
    """A transport as data."""

    rdma: bool  # over RDMA ports, with their packets, rates and MTU; else over the job's own interface
    gpu_memory: bool = False  # from GPU memory, past the host's
    nccl: Mapping[str, str]  # variables that make NCCL take it
    carriers: frozenset[str]  # by which NCCL's channels between nodes may go
    link_tool: str  # that measures a link without NCCL
    install: str  # what to type where that tool is missing
