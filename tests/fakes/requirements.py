"""Specs for tests, as `config.load` would make them."""

from __future__ import annotations

from dataclasses import replace

from vsphere_ml.core.model.spec import ClusterSpec, GpuRequest, Location, NicRequest, NodeSpec, Source, VCenterSpec
from vsphere_ml.core.units import gib


def node(name: str, **knobs: object) -> NodeSpec:
    """Return a node of 16 vCPUs, 64 GiB and one A100-40C, with a ConnectX-6 Dx by whatever way there is."""
    plain = NodeSpec(
        name=name,
        cpus=16,
        memory=gib(64),
        gpu=GpuRequest(profile="A100-40C"),
        nic=NicRequest(port_group="roce"),
        port_group="vm-mgmt",
    )
    return replace(plain, **knobs)  # type: ignore[arg-type]


def nodes(count: int, **knobs: object) -> tuple[NodeSpec, ...]:
    return tuple(node(f"node-{number}", **knobs) for number in range(1, count + 1))


def cluster(wanted: int | tuple[NodeSpec, ...] = 4, **knobs: object) -> ClusterSpec:
    """Return a spec for the 8.0 U3 lab."""
    plain = ClusterSpec(
        name="train",
        vcenter=VCenterSpec(lab="default"),
        location=Location(datacenter="lab-dc", cluster="gpu", folder="train", datastore="vsan"),
        source=Source(template="ubuntu-22.04-gpu"),
        nodes=nodes(wanted) if isinstance(wanted, int) else wanted,
    )
    return replace(plain, **knobs)  # type: ignore[arg-type]


def seed_cluster(wanted: int | tuple[NodeSpec, ...] = 2, **knobs: object) -> ClusterSpec:
    """Return a spec for the 7.0 U2 lab."""
    return cluster(wanted, source=Source(template="ubuntu-20.04-gpu"), **knobs)
