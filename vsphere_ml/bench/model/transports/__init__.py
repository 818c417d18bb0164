"""What the bytes between nodes can go by: a file here and a member below for each transport.

Everybody else asks a transport for what it needs and is, and compares it with none, so that the next one is added here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.bench.model.transports import gpudirect, pvrdma, roce, tcp
from vsphere_ml.core.spec_enum import SpecEnum

if TYPE_CHECKING:
    from vsphere_ml.bench.model.transports.transport_spec import TransportSpec


class Transport(SpecEnum):
    """What the bytes between nodes were asked to go by; `Run.paths` has what they went by."""

    spec: TransportSpec

    TCP = "tcp", tcp.SPEC
    PVRDMA = "pvrdma", pvrdma.SPEC
    ROCE = "roce", roce.SPEC
    GPUDIRECT = "gpudirect", gpudirect.SPEC
