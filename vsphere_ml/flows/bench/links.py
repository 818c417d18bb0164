"""The links between nodes, measured by the plain tool of what goes over them, one pair after the other."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from vsphere_ml.bench.model.record import Workload
from vsphere_ml.bench.model.transports import Transport
from vsphere_ml.bench.probe import link, link_tools, packet_size, perftest
from vsphere_ml.bench.proof.launch_context import MeasuredLinks
from vsphere_ml.core.errors import BenchError
from vsphere_ml.flows.bench.launch import in_each

if TYPE_CHECKING:
    from collections.abc import Callable

    from vsphere_ml.bench.launch.matrix import BenchSpec
    from vsphere_ml.bench.model.record import Configuration, LinkResult, Remark
    from vsphere_ml.bench.probe.perftest import End
    from vsphere_ml.core.model.guest import Peer, Shell
    from vsphere_ml.flows.bench.launch import BenchSession

T = TypeVar("T")
_MARK = "link"  # of the tools' processes
Calibrated = dict[tuple[int, Transport], MeasuredLinks]


def where_possible(spec: BenchSpec, session: BenchSession) -> BenchSpec:
    """Return the wish with its links also measured over every transport that the guests have the tools for."""
    possible = [each for each in Transport if _lack(session, max(spec.nodes), each) is None]
    return replace(spec, link_transports=tuple(dict.fromkeys([*spec.transports, *possible])))


def wire(session: BenchSession, asked: Configuration, calibrated: Calibrated) -> MeasuredLinks:
    """Return what the nodes have between them, measured once for each number of nodes and whenever it is asked for.

    Where it cannot be measured, the record says so; where the tool fails, what was to go over the links goes on.
    """
    key = (asked.nodes, asked.transport)
    if key in calibrated and asked.workload is not Workload.LINK:
        return replace(calibrated[key], links=())
    try:
        measured = calibrated[key] = _measure_between(session, *key)
    except BenchError as error:
        calibrated[key] = MeasuredLinks(remarks=(link_tools.not_measured(asked.transport, error.message),))
        measured = replace(calibrated[key], failure=error)
    return replace(measured, remarks=(*measured.remarks, *_other_link_tools(session, asked)))


def check_packet_sizes(session: BenchSession, nodes: int) -> None:
    """Raise BenchError `bench.packet-size` unless packets of full size get from every port to its counterparts."""
    surveyed = session.surveyed[:nodes]
    asks = packet_size.commands(surveyed)
    places = [each for each in session.places if each.name in asks]
    answers = in_each(
        session.guests, places, lambda shell: shell.run(asks[shell.name], timeout_s=packet_size.TIMEOUT_S).out
    )
    packet_size.check(surveyed, answers)


def _lack(session: BenchSession, nodes: int, transport: Transport) -> str | None:
    return link_tools.lack(transport, session.surveyed[:nodes])


def _other_link_tools(session: BenchSession, asked: Configuration) -> tuple[Remark, ...]:
    """Return what the links are not measured by besides, when measuring them is all that was asked for."""
    if asked.workload is not Workload.LINK or asked.transport.spec.rdma:
        return ()
    missing = {each: _lack(session, asked.nodes, each) for each in Transport if each.spec.rdma}
    return tuple(link_tools.not_measured(each, why) for each, why in missing.items() if why is not None)


def _measure_between(session: BenchSession, nodes: int, transport: Transport) -> MeasuredLinks:
    """Return the wire between so many nodes; alone, a node has none."""
    pairs = link.pairs(session.peers[:nodes])
    if pairs and (why := _lack(session, nodes, transport)) is not None:
        return MeasuredLinks(remarks=(link_tools.not_measured(transport, why),))
    measure = _by_perftest if transport.spec.rdma else _by_iperf3
    of_pairs = [measure(session, sender, receiver, transport) for sender, receiver in pairs]
    # What goes by several ports at once has the sum of them, as far as they do not stand in each other's way.
    slowest = min((sum(each.bytes_per_s for each in links) for links in of_pairs), default=None)
    return MeasuredLinks(links=tuple(each for links in of_pairs for each in links), bytes_per_s=slowest)


def _by_iperf3(session: BenchSession, sender: Peer, receiver: Peer, _transport: Transport) -> tuple[LinkResult, ...]:
    _run_in_guest(session, receiver, lambda shell: link.serve(shell, receiver.address, _MARK))
    return (_run_in_guest(session, sender, lambda shell: link.measure(shell, sender, receiver)),)


def _by_perftest(session: BenchSession, sender: Peer, receiver: Peer, transport: Transport) -> tuple[LinkResult, ...]:
    """Return what each port gets through, one after the other."""
    surveyed = {each.node: each for each in session.surveyed}
    within = session.means.tools.within
    one, other = (link_tools.ends(each, surveyed[each.name], transport, within) for each in (sender, receiver))
    return tuple(_measure_perftest(session, *ends) for ends in zip(one, other, strict=False))


def _measure_perftest(session: BenchSession, *ends: End) -> LinkResult:
    sender, receiver = (replace(each, traffic_class=session.spec.roce.traffic_class) for each in ends)
    _run_in_guest(session, receiver.node, lambda shell: perftest.serve(shell, receiver, _MARK))
    return _run_in_guest(session, sender.node, lambda shell: perftest.measure(shell, sender, receiver, _MARK))


def _run_in_guest(session: BenchSession, node: Peer, work: Callable[[Shell], T]) -> T:
    """Return what the work came to in the node's guest."""
    place = next(each for each in session.places if each.name == node.name)
    return in_each(session.guests, [place], work)[node.name]
