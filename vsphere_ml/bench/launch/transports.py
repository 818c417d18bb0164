"""What a transport asks NCCL for, as variables, and what guests must have for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from vsphere_ml.bench.probe import rdma
from vsphere_ml.core.errors import NotPossible

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from vsphere_ml.bench.model.transports import Transport
    from vsphere_ml.bench.probe.survey import Surveyed


@dataclass(frozen=True, slots=True, kw_only=True)
class NcclSettings:
    """NCCL's variables: those of all ranks, and by node those in which nodes differ."""

    common: Mapping[str, str]
    by_node: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


def nccl_settings(
    transport: Transport, interface: str, surveyed: Sequence[Surveyed], traffic_class: int | None = None
) -> NcclSettings:
    """Return NCCL's settings; `traffic_class` is what RDMA packets are to be marked with.

    NotPossible `bench.no-rdma` when RDMA is asked for where it cannot be. Without a GPU NCCL is not used and reads none
    of them.
    """
    log = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,NET,P2P,SHM", "NCCL_SOCKET_IFNAME": f"={interface}"}
    if not transport.spec.rdma:
        return NcclSettings(common=log | dict(transport.spec.nccl))
    without = [each.node for each in surveyed if not each.gpus]
    if without:
        raise NotPossible(
            f"{', '.join(without)}: {transport.value} is NCCL's way, and NCCL needs a GPU in each guest",
            code="bench.no-rdma",
            target=without[0],
            hint="`vsml verify` tells what a node has; --transport tcp needs none",
        )
    ports = rdma.nccl_settings({each.node: rdma.rails(each.ports) for each in surveyed})
    alike = _in_all(ports.values())
    return NcclSettings(
        common=log | alike | _traffic_class(traffic_class) | dict(transport.spec.nccl),
        by_node={node: rest for node, each in ports.items() if (rest := dict(each.items() - alike.items()))},
    )


def _in_all(settings: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Return the variables that all nodes have with the same value."""
    first, *others = settings
    return {name: value for name, value in first.items() if all(each.get(name) == value for each in others)}


def _traffic_class(byte: int | None) -> dict[str, str]:
    """Return what puts NCCL's packets into the lossless class: NCCL_IB_TC is 0 by default, which is DSCP 0.

    MPI needs nothing of the kind: its messages go by TCP here.
    """
    return {} if byte is None else {"NCCL_IB_TC": str(byte)}
