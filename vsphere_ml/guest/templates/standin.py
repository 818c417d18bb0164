"""Guests as templates may see them before there are any: for looking over what they would be made into."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.core.model.guest import GuestFacts, Peer

if TYPE_CHECKING:
    from vsphere_ml.core.model.spec import ClusterSpec, NodeSpec

ADDRESS = "192.0.2.1"  # of RFC 5737: nobody's
_VALUES = {"known_hosts": f"{ADDRESS} ssh-ed25519 AAAA", "mesh_public_key": "ssh-ed25519 AAAA"}


def facts(spec: ClusterSpec) -> tuple[GuestFacts, ...]:
    """Return what steps would know of one guest of each kind that the cluster file describes."""
    peers = tuple(sorted(map(_peer, spec.nodes), key=lambda each: each.name))
    kinds = {(node.gpu, node.nic.kind): node for node in reversed(spec.nodes)}
    return tuple(_facts(spec, node, peers) for node in kinds.values())


def _facts(spec: ClusterSpec, node: NodeSpec, peers: tuple[Peer, ...]) -> GuestFacts:
    return GuestFacts(
        name=node.name,
        cluster=spec.name,
        peers=peers,
        gpus=node.gpu.count,
        profile=node.gpu.profile,
        linked=node.gpu.kind.spec.linked,
        nic=node.nic.kind,
        lab=spec.vcenter.lab is not None,
        values={**_VALUES, **spec.guest.settings},
    )


def _peer(node: NodeSpec) -> Peer:
    return Peer(
        name=node.name,
        address=node.address.address.partition("/")[0] if node.address else ADDRESS,
        roce_address=node.roce_address,
        more_roce_addresses=node.more_roce_addresses,
        slots=node.gpu.count,
    )
