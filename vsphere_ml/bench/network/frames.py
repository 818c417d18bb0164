"""How much of a link's line rate is left for payload."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from vsphere_ml.bench.model.record import Link, LinkResult
    from vsphere_ml.bench.model.transports import Transport

GAP = 20  # bytes on the wire beside each Ethernet frame: preamble 8, gap 12
ETHERNET = 18  # header 14, check sequence 4
TCP_IP = 52  # IPv4 20, TCP 20, timestamps 12
HEADERS = 14 + TCP_IP  # of a TCP segment as an adapter counts it: the check sequence is added after that
ROCE = 62  # RoCEv2: Ethernet 14, IPv4 20, UDP 8, BTH 12, ICRC 4, FCS 4
INFINIBAND = 26  # LRH 8, BTH 12, ICRC 4, VCRC 2; within a subnet there is no GRH
ROCE_IN_MTU = ROCE - ETHERNET + 16  # in the Ethernet MTU; the first packet of a message also has an RETH of 16
RDMA_MTUS = (4096, 2048, 1024, 512, 256)
DEFAULT_MTU = 1500
JUMBO = 9000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Frame:
    """A full packet of a transport."""

    payload_bytes: int
    frame_bytes: int

    @property
    def share(self) -> float:
        """Payload as a share of what it occupies of the wire."""
        return self.payload_bytes / self.frame_bytes


def frame(transport: Transport, mtu_bytes: int) -> _Frame:
    """Return the packet that this transport fills on Ethernet of this MTU."""
    if transport.spec.rdma:
        return rdma_frame(rdma_mtu(mtu_bytes))
    return _Frame(payload_bytes=mtu_bytes - TCP_IP, frame_bytes=mtu_bytes + ETHERNET + GAP)


def rdma_frame(payload_bytes: int) -> _Frame:
    """Return a full RoCEv2 packet of this RDMA MTU."""
    return _Frame(payload_bytes=payload_bytes, frame_bytes=payload_bytes + ROCE + GAP)


def infiniband_frame(payload_bytes: int) -> _Frame:
    """Return a full packet of InfiniBand's own of this MTU; its line rate is that of data, after the encoding."""
    return _Frame(payload_bytes=payload_bytes, frame_bytes=payload_bytes + INFINIBAND)


def rdma_mtu(mtu_bytes: int) -> int:
    """Return the largest RDMA MTU that Ethernet of this MTU carries."""
    return next((each for each in RDMA_MTUS if each + ROCE_IN_MTU <= mtu_bytes), RDMA_MTUS[-1])


def usable_bytes_per_s(line_rate_bits_per_s: float, transport: Transport, mtu_bytes: int, nics: int = 1) -> float:
    """Return what a node can send at most, headers left out."""
    return line_rate_bits_per_s / 8 * nics * frame(transport, mtu_bytes).share


def usable_of_link_result(link: LinkResult) -> float | None:
    """Return what headers leave of the line rate at the RDMA MTU a link was measured with; None without one."""
    if link.line_rate_bits_per_s is None or link.rdma_mtu_bytes is None:
        return None
    packet = (infiniband_frame if link.infiniband else rdma_frame)(link.rdma_mtu_bytes)
    return link.line_rate_bits_per_s / 8 * packet.share


def usable_of_link(link: Link, transport: Transport) -> float | None:
    """Return what headers leave of a recorded link's line rate; None when nobody knows that rate."""
    if link.line_rate_bits_per_s is None:
        return None
    return usable_bytes_per_s(link.line_rate_bits_per_s, transport, link.mtu_bytes or DEFAULT_MTU, link.nics)
