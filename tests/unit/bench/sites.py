"""Nodes as the survey found them, for tests."""

from __future__ import annotations

from vsphere_ml.bench.probe.rdma import Port, PortGid
from vsphere_ml.bench.probe.survey import Surveyed


def port(device: str = "mlx5_0", index: int = 3, interface: str = "eth1", last: int = 11) -> Port:
    """Return an active port of 100 Gbit/s with one address."""
    gid = PortGid(index=index, address=f"10.1.0.{last}", interface=interface)
    return Port(device=device, line_rate_bits_per_s=100e9, gids=(gid,))


def rdma_nodes(gpus: int = 1) -> tuple[Surveyed, Surveyed]:
    """Return two nodes, each with an RDMA device."""
    one, other = (
        Surveyed(node=f"node-{number}", runtime=True, ports=(port(last=10 + number),), gpus=gpus, mtu={"eth1": 9000})
        for number in (1, 2)
    )
    return one, other
