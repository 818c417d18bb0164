"""A cluster of two nodes, as its guests' steps know it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from vsphere_ml.core.model.device_kinds import NicKind
from vsphere_ml.core.model.guest import GuestFacts, Peer
from vsphere_ml.core.secret import Secret

KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\nhunter2-mesh\n-----END OPENSSH PRIVATE KEY-----\n"
TOKEN = "hunter2-token"
REGISTRY_KEY = "hunter2-registry"
SECRETS = ("hunter2-mesh", TOKEN, REGISTRY_KEY)

PEERS = (
    Peer(name="node-1", address="10.0.0.11", roce_address="192.168.0.11", slots=1),
    Peer(name="node-2", address="10.0.0.12", roce_address="192.168.0.12", slots=1),
)

NODE_1 = GuestFacts(
    name="node-1",
    cluster="demo",
    peers=PEERS,
    gpus=1,
    profile="grid_a100-40c",
    vgpu_manager="525.105.14",
    roce_mac="00:50:56:AA:BB:01",
    values={
        "mesh_public_key": "ssh-ed25519 AAAAmesh demo",
        "known_hosts": "node-1 ssh-ed25519 AAAA1\nnode-2 ssh-ed25519 AAAA2\n",
    },
    secrets={
        "mesh_key": Secret(KEY),
        "licence_token": Secret(TOKEN),
        "registry_key": Secret(REGISTRY_KEY),
    },
)


def facts(**changes: Any) -> GuestFacts:
    """Return the facts of node-1 with some of them changed; values are added to, not replaced."""
    if "values" in changes:
        changes["values"] = {**NODE_1.values, **changes["values"]}
    if "peers" in changes:
        changes["peers"] = tuple(Peer(**each) if isinstance(each, dict) else each for each in changes["peers"])
    if "nic" in changes:
        changes["nic"] = NicKind(changes["nic"])
    return replace(NODE_1, **changes)
