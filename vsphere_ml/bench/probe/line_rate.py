"""How fast a node's link is by its own account, and who says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.bench.probe import rdma
from vsphere_ml.bench.probe.machines import Machine
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from vsphere_ml.bench.model.transports import Transport
    from vsphere_ml.bench.probe.survey import Surveyed

# Paravirtual adapters report a rate of their own making, whatever the wire has; vmxnet3's is 10 Gbit/s.
MADE_UP = frozenset({"vmxnet3", "virtio_net", "e1000", "e1000e", "hv_netvsc", "xen_netfront"})


@dataclass(frozen=True, slots=True, kw_only=True)
class LineRate:
    """Bits per second of one NIC, None where unknown; and its source, or why it is unknown."""

    bits_per_s: float | None
    source: str
    nics: int = 1  # of each node, that a job goes by


def line_rate(
    surveyed: Sequence[Surveyed],
    interface: str,
    transport: Transport,
    machines: Mapping[str, Machine],
    given_bits_per_s: float | None = None,
) -> LineRate:
    """Return the rate of the nodes' slowest link: as a person gave it, as the guests report it, or as vCenter does.

    Of a paravirtual adapter vCenter reports the slowest uplink of its switch on the VM's host, of RDMA the NIC that the
    VM has a function of.
    """
    if given_bits_per_s is not None:
        return LineRate(bits_per_s=given_bits_per_s, source="given with --link-gbit")
    rates = [_of_node(each, interface, transport, machines.get(each.node, Machine())) for each in surveyed]
    silent = next((each for each in rates if each.bits_per_s is None), None)
    if silent is not None or not rates:
        return silent or LineRate(bits_per_s=None, source="no guest was asked")
    slowest = min(rates, key=lambda each: each.bits_per_s or 0.0)
    return LineRate(bits_per_s=slowest.bits_per_s, source=slowest.source, nics=min(each.nics for each in rates))


def _of_node(seen: Surveyed, interface: str, transport: Transport, machine: Machine) -> LineRate:
    if transport.spec.rdma:
        return _of_rdma(seen, machine)
    driver = seen.drivers.get(interface, "")
    if not driver:
        return LineRate(bits_per_s=None, source=f"{interface} in {seen.node} is no device with a link of its own")
    if driver in MADE_UP:
        return _of_uplink(seen, interface, driver, machine)
    rate = seen.rates.get(interface)
    if rate is None:
        return LineRate(bits_per_s=None, source=f"{interface} in {seen.node} tells no rate")
    return LineRate(bits_per_s=rate, source=f"/sys/class/net/{interface}/speed in the guests ({driver})")


def _of_uplink(seen: Surveyed, interface: str, driver: str, machine: Machine) -> LineRate:
    uplink = machine.uplinks.get(seen.macs.get(interface, ""))
    if uplink is None:
        why = f"{interface} in {seen.node} is {driver}, whose rate is not the wire's, and vCenter tells no uplink's"
        return LineRate(bits_per_s=None, source=why)
    return LineRate(bits_per_s=uplink.bits_per_s, source=f"vCenter, the slowest uplink of switch {uplink.switch}")


def _of_rdma(seen: Surveyed, machine: Machine) -> LineRate:
    """Return the rate of the slowest port that RDMA can go by: of a PVRDMA adapter that of its switch's uplink."""
    rails = rdma.rails(seen.ports)
    if any(each.port.paravirtual for each in rails):
        return _of_uplink(seen, rails[0].gid.interface, rdma.PVRDMA_DRIVER, machine)
    ports = [each.port for each in rails]
    rates = [each.line_rate_bits_per_s for each in ports if each.line_rate_bits_per_s is not None]
    if ports and len(rates) == len(ports):
        source = f"/sys/class/infiniband/{ports[0].device}/ports in the guests"
        return LineRate(bits_per_s=min(rates), source=source, nics=len(ports))
    if machine.nic_bits_per_s is not None:
        return LineRate(bits_per_s=machine.nic_bits_per_s, source="vCenter, the link of the host's physical NIC")
    return LineRate(bits_per_s=None, source=f"no RDMA port in {seen.node} tells a rate")
