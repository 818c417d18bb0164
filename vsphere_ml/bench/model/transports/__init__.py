"""What the bytes between nodes can go by: a file here and a member below for each transport.

Everybody else asks a transport for what it needs and is, and compares it with none, so that the next one is added here.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Self

from vsphere_ml.bench.model.transports import gpudirect, pvrdma, roce, tcp

if TYPE_CHECKING:
    from vsphere_ml.bench.model.transports.transport_spec import TransportSpec


class Transport(StrEnum):
    """What the bytes between nodes were asked to go by; `Run.paths` has what they went by."""

    spec: TransportSpec

    def __new__(cls, name: str, *special: TransportSpec) -> Self:
        """Return the member of this name in files and options, with what is special about it."""
        made = str.__new__(cls, name)
        made._value_ = name
        (made.spec,) = special
        return made

    TCP = "tcp", tcp.SPEC
    PVRDMA = "pvrdma", pvrdma.SPEC
    ROCE = "roce", roce.SPEC
    GPUDIRECT = "gpudirect", gpudirect.SPEC
