"""What a transport asks NCCL for, or UCX where MPI carries the collectives, and what guests must have for it."""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING

from vsphere_ml.bench.model.launcher_names import Backend, LauncherName
from vsphere_ml.bench.probe import rdma
from vsphere_ml.core.errors import NotPossible
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from vsphere_ml.bench.model.record import Configuration
    from vsphere_ml.bench.model.transports import Transport
    from vsphere_ml.bench.probe.survey import Surveyed

_WITHOUT_GPUS = "--launcher mpirun --backend mpi goes from host memory by UCX, without a GPU; "


@dataclass(frozen=True, slots=True, kw_only=True)
class _TransportSettings:
    """NCCL's or UCX's variables: those of all ranks, and by node those in which nodes differ."""

    common: Mapping[str, str]
    by_node: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    over_ucx: bool = False  # MPI goes by UCX over RDMA ports


def transport_settings(
    asked: Configuration, interface: str, surveyed: Sequence[Surveyed], traffic_class: int | None = None
) -> _TransportSettings:
    """Return the settings of what carries the collectives; `traffic_class` is what RDMA packets are to be marked with.

    RDMA from host memory needs no GPU where MPI carries it. NotPossible `bench.no-rdma` when RDMA is asked for where
    it cannot be.
    """
    # horovodrun names Open MPI's components itself, those of TCP.
    by_mpi = asked.launcher == LauncherName.MPIRUN and asked.backend == Backend.MPI
    if asked.transport.spec.ucx and by_mpi and not all(map(_reduces_on_gpus, surveyed)):
        return ucx_settings(asked.transport, surveyed, traffic_class)
    return nccl_settings(asked.transport, interface, surveyed, traffic_class)


def _reduces_on_gpus(each: Surveyed) -> bool:
    return bool(each.gpus) and each.horovod_nccl


def ucx_settings(
    transport: Transport, surveyed: Sequence[Surveyed], traffic_class: int | None = None
) -> _TransportSettings:
    """Return UCX's settings for RDMA from host memory; NotPossible `bench.no-rdma` when a node has no such port.

    At the level `info` UCX logs what each endpoint goes by.
    """
    marked = {} if traffic_class is None else {"UCX_IB_TRAFFIC_CLASS": str(traffic_class)}
    common = {"UCX_TLS": transport.spec.ucx, "UCX_LOG_LEVEL": "info", **marked}
    ports = rdma.ucx_settings({each.node: rdma.rails(each.ports) for each in surveyed}, transport)
    return replace(_split(common, ports), over_ucx=True)


def nccl_settings(
    transport: Transport, interface: str, surveyed: Sequence[Surveyed], traffic_class: int | None = None
) -> _TransportSettings:
    """Return NCCL's settings; `traffic_class` is what RDMA packets are to be marked with.

    NotPossible `bench.no-rdma` when RDMA is asked for where it cannot be. Without a GPU NCCL is not used and reads none
    of them.
    """
    log = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,NET,P2P,SHM", "NCCL_SOCKET_IFNAME": f"={interface}"}
    if not transport.spec.rdma:
        return _TransportSettings(common=log | dict(transport.spec.nccl))
    without = [each.node for each in surveyed if not each.gpus]
    if without:
        raise NotPossible(
            f"{', '.join(without)}: {transport.value} is NCCL's way, and NCCL needs a GPU in each guest",
            code="bench.no-rdma",
            target=without[0],
            hint=f"{_WITHOUT_GPUS if transport.spec.ucx else ''}`vsml verify` tells what a node has; "
            "--transport tcp needs none",
        )
    ports = rdma.nccl_settings({each.node: rdma.rails(each.ports) for each in surveyed}, transport)
    return _split(log | _traffic_class(traffic_class) | dict(transport.spec.nccl), ports)


def _split(common: Mapping[str, str], ports: Mapping[str, Mapping[str, str]]) -> _TransportSettings:
    """Return settings with what all nodes have in common apart from what they differ in."""
    alike = _in_all(ports.values())
    return _TransportSettings(
        common={**common, **alike},
        by_node={node: rest for node, each in ports.items() if (rest := dict(each.items() - alike.items()))},
    )


def _in_all(settings: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Return the variables that all nodes have with the same value."""
    first, *others = settings
    return {name: value for name, value in first.items() if all(each.get(name) == value for each in others)}


def _traffic_class(byte: int | None) -> dict[str, str]:
    """Return what puts NCCL's packets into the lossless class: NCCL_IB_TC is 0 by default, which is DSCP 0.

    MPI needs nothing of the kind where its messages go by TCP.
    """
    return {} if byte is None else {"NCCL_IB_TC": str(byte)}
