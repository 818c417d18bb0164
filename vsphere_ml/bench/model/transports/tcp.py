"""TCP, over the interface that the ranks talk over."""

from __future__ import annotations

from vsphere_ml.bench.model.transports.transport_spec import SOCKET, TransportSpec
from vsphere_ml.core.hints import CommandLine

SPEC = TransportSpec(
    rdma=False,
    nccl={"NCCL_IB_DISABLE": "1"},
    carriers=frozenset({SOCKET}),
    link_tool="iperf3",
    install=CommandLine("vsml run --sudo -- apt-get install -y iperf3"),
)
