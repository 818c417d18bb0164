"""How fast a node's link is by its own account, and who says so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from vsphere_ml.bench import rdma
from vsphere_ml.bench.record import Transport

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vsphere_ml.bench.machines import Machine
    from vsphere_ml.bench.survey import Surveyed

# Paravirtual adapters tell a rate of their own making, whatever the wire has; vmxnet3's is 10 Gbit/s.
MADE_UP = frozenset({"vmxnet3", "virtio_net", "e1000", "e1000e", "hv_netvsc", "xen_netfront"})


@dataclass(frozen=True, slots=True, kw_only=True)
class LineRate:
    """Bits per second of one NIC, None where nobody can tell; and who told it, or why nobody can."""

    bits_per_s: float | None
    source: str
    nics: int = 1  # of each node, that a job goes by


def line_rate(
    surveyed: Sequence[Surveyed],
    interface: str,
    transport: Transport,
    machines: Sequence[Machine],
    given_bits_per_s: float | None = None,
) -> LineRate:
    """Return the rate of the nodes' slowest link: as a person gave it, as the guests tell it, or as vCenter does.

    vCenter is asked only of what goes over the NIC's RDMA device; it does not tell by which uplink a port group leaves.
    """
    if given_bits_per_s is not None:
        return LineRate(bits_per_s=given_bits_per_s, source="given with --link-gbit")
    told = [_of_guest(each, interface, transport) for each in surveyed]
    rates = [each.bits_per_s for each in told if each.bits_per_s is not None]
    if told and len(rates) == len(told):
        return LineRate(bits_per_s=min(rates), source=told[0].source, nics=min(each.nics for each in told))
    of_hosts = [each.nic_bits_per_s for each in machines if each.nic_bits_per_s is not None]
    if transport is not Transport.TCP and of_hosts and len(of_hosts) == len(machines):
        return LineRate(bits_per_s=min(of_hosts), source="vCenter, the link of the host's physical NIC")
    why = next((each.source for each in told if each.bits_per_s is None), "no guest was asked")
    return LineRate(bits_per_s=None, source=why)


def _of_guest(seen: Surveyed, interface: str, transport: Transport) -> LineRate:
    if transport is not Transport.TCP:
        return _of_rdma(seen)
    driver = seen.drivers.get(interface, "")
    if not driver:
        return LineRate(bits_per_s=None, source=f"{interface} in {seen.node} is no device with a link of its own")
    if driver in MADE_UP:
        return LineRate(bits_per_s=None, source=f"{interface} in {seen.node} is {driver}, whose rate is not the wire's")
    rate = seen.rates.get(interface)
    if rate is None:
        return LineRate(bits_per_s=None, source=f"{interface} in {seen.node} tells no rate")
    return LineRate(bits_per_s=rate, source=f"/sys/class/net/{interface}/speed in the guests ({driver})")


def _of_rdma(seen: Surveyed) -> LineRate:
    """Return the rate of the slowest port that RoCE can go by."""
    ports = [each.port for each in rdma.rails(seen.ports)]
    rates = [each.line_rate_bits_per_s for each in ports if each.line_rate_bits_per_s is not None]
    if not rates or len(rates) < len(ports):
        return LineRate(bits_per_s=None, source=f"no RDMA port in {seen.node} tells a rate")
    source = f"/sys/class/infiniband/{ports[0].device}/ports in the guests"
    return LineRate(bits_per_s=min(rates), source=source, nics=len(ports))
