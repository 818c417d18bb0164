"""TCP, over the interface that the ranks talk over."""

from __future__ import annotations

from vsphere_ml.bench.model.transports.transport_spec import SOCKET, TransportSpec

SPEC = TransportSpec(
    rdma=False,
    nccl={"NCCL_IB_DISABLE": "1"},
    carriers=frozenset({SOCKET}),
    link_tool="iperf3",
    install="vsml run --sudo -- apt-get install -y iperf3",
)
