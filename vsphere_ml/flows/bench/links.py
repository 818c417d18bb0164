"""The links between nodes, measured by the plain tool of what goes over them: one pair by itself, and all at once."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from vsphere_ml.bench.model.record import LinkLoad, Workload
from vsphere_ml.bench.model.transports import Transport
from vsphere_ml.bench.probe import link, link_tools, packet_size, perftest, survey
from vsphere_ml.bench.probe.link import Flow
from vsphere_ml.bench.proof.launch_context import MeasuredLinks
from vsphere_ml.core.errors import BenchError
from vsphere_ml.flows.bench.launch import in_each

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from vsphere_ml.bench.launch.matrix import BenchSpec
    from vsphere_ml.bench.model.record import Configuration, LinkResult
    from vsphere_ml.bench.probe.perftest import End
    from vsphere_ml.core.diagnostics import Diagnostic
    from vsphere_ml.core.model.guest import Peer, Shell
    from vsphere_ml.flows.bench.launch import BenchSession

T = TypeVar("T")
Pair: TypeAlias = "tuple[Peer, Peer]"
_MARK = "link"  # of the tools' processes
Calibrated = dict[tuple[int, Transport], MeasuredLinks]


def where_possible(spec: BenchSpec, session: BenchSession) -> BenchSpec:
    """Return the spec with its links also measured over every transport that the guests have the tools for."""
    possible = [each for each in Transport if _missing_tool(session, max(spec.nodes), each) is None]
    return replace(spec, link_transports=tuple(dict.fromkeys([*spec.transports, *possible])))


def measure_links(session: BenchSession, asked: Configuration, calibrated: Calibrated) -> MeasuredLinks:
    """Return what the nodes have between them, measured once for each number of nodes and whenever it is asked for.

    Where it cannot be measured, the record says so; where the tool fails, what was to go over the links goes on.
    """
    key = (asked.nodes, asked.transport)
    by_itself = asked.workload is Workload.LINK
    if key in calibrated and not by_itself:
        return replace(calibrated[key], links=())
    rails = session.settings.rails if by_itself else ()
    try:
        measured = _measure_between(session, *key, alone=by_itself, rails=rails)
        if not rails:  # launches go by the job's own interface
            calibrated[key] = measured
    except BenchError as error:
        calibrated[key] = MeasuredLinks(diagnostics=(link_tools.not_measured(asked.transport, error.message),))
        measured = replace(calibrated[key], failure=error)
    return replace(measured, diagnostics=(*measured.diagnostics, *_other_link_tools(session, asked)))


def check_packet_sizes(session: BenchSession, nodes: int) -> None:
    """Raise BenchError `bench.packet-size` unless packets of full size get from every port to its counterparts."""
    surveyed = session.surveyed[:nodes]
    asks = packet_size.commands(surveyed)
    places = [each for each in session.places if each.name in asks]
    answers = in_each(
        session.guests, places, lambda shell: shell.run(asks[shell.name], timeout_s=packet_size.TIMEOUT_S).out
    )
    packet_size.check(surveyed, answers)


def _missing_tool(session: BenchSession, nodes: int, transport: Transport) -> str | None:
    return link_tools.missing_tool(transport, session.surveyed[:nodes])


def _other_link_tools(session: BenchSession, asked: Configuration) -> tuple[Diagnostic, ...]:
    """Return what the links are not measured by besides, when measuring them is all that was asked for.

    Of RDMA's those by PVRDMA adapters where the guests have such, else those by NICs' functions.
    """
    if asked.workload is not Workload.LINK or asked.transport.spec.rdma:
        return ()
    paravirtual = any(port.paravirtual for each in session.surveyed for port in each.ports)
    rdma = [each for each in Transport if each.spec.rdma and each.spec.paravirtual == paravirtual]
    missing = {each: _missing_tool(session, asked.nodes, each) for each in rdma}
    return tuple(link_tools.not_measured(each, why) for each, why in missing.items() if why is not None)


def measure_again(session: BenchSession, key: tuple[int, Transport]) -> float | None:
    """Return what the slowest node gets through once more, as a calibration; None where nothing could be measured."""
    return _measure_between(session, *key).bytes_per_s


def _measure_between(
    session: BenchSession, nodes: int, transport: Transport, *, alone: bool = False, rails: Sequence[str] = ()
) -> MeasuredLinks:
    """Return what the nodes have between them when all send at once; with `alone` also each pair by itself before.

    One node has none.
    """
    pairs = link.pairs(session.peers[:nodes])
    if pairs and (why := _missing_tool(session, nodes, transport)) is not None:
        return MeasuredLinks(diagnostics=(link_tools.not_measured(transport, why),))
    if not pairs:
        return MeasuredLinks()
    measure = _by_perftest if transport.spec.rdma else partial(_by_iperf3, rails=rails)
    of_pairs = [measure(session, [pair], transport, LinkLoad.ALONE) for pair in pairs] if alone else []
    ring = measure(session, pairs, transport, LinkLoad.RING)
    slowest = min(sum(each.bytes_per_s for each in ring if each.sender == sender.name) for sender, _ in pairs)
    return MeasuredLinks(links=tuple(each for links in (*of_pairs, ring) for each in links), bytes_per_s=slowest)


def _by_iperf3(
    session: BenchSession, pairs: Sequence[Pair], _transport: Transport, load: LinkLoad, *, rails: Sequence[str]
) -> tuple[LinkResult, ...]:
    """Return what these pairs get through at the same time, each by all rails."""
    flows = [flow for sender, receiver in pairs for flow in _flows(session, sender, receiver, rails)]
    _in_guests(
        session,
        {receiver.name for _, receiver in pairs},
        lambda shell: link.serve(shell, [flow for flow in flows if flow.receiver.name == shell.name], _MARK),
    )
    results = _in_guests(
        session,
        {sender.name for sender, _ in pairs},
        lambda shell: link.measure(shell, [flow for flow in flows if flow.sender.name == shell.name], load),
    )
    return tuple(each for sender, _ in pairs for each in results[sender.name])


def _flows(session: BenchSession, sender: Peer, receiver: Peer, rails: Sequence[str]) -> Iterator[Flow]:
    """Yield what goes from one node to the other: by each rail's own addresses, or by the job's interface."""
    if not rails:
        yield Flow(sender=sender, receiver=receiver)
    for rail in rails:
        on_rail = {each.name: each for each in survey.peers_on_interface(session.surveyed, session.peers, rail)}
        yield Flow(sender=on_rail[sender.name], receiver=on_rail[receiver.name], rail=rail)


def _by_perftest(
    session: BenchSession, pairs: Sequence[Pair], transport: Transport, load: LinkLoad
) -> tuple[LinkResult, ...]:
    """Return what each port gets through: a single pair's one after the other, those of a ring all at the same time."""
    ends = {
        (sender.name, receiver.name): _ends(session, sender, receiver, transport, load) for sender, receiver in pairs
    }
    if load is LinkLoad.ALONE:
        return tuple(_measure_perftest(session, rail) for rails in ends.values() for rail in rails)
    every = [rail for rails in ends.values() for rail in rails]
    _in_guests(
        session,
        {receiver.node.name for _, receiver in every},
        lambda shell: _serve_all(shell, [end for _, end in every if end.node.name == shell.name]),
    )
    results = _in_guests(
        session,
        {sender.node.name for sender, _ in every},
        lambda shell: perftest.measure_at_once(
            shell, [each for each in every if each[0].node.name == shell.name], _MARK
        ),
    )
    return tuple(each for sender, _ in pairs for each in results.get(sender.name, ()))


def _serve_all(shell: Shell, ends: Sequence[End]) -> None:
    for end in ends:
        perftest.serve(shell, end, _MARK)


def _ends(
    session: BenchSession, sender: Peer, receiver: Peer, transport: Transport, load: LinkLoad
) -> list[tuple[End, End]]:
    """Return both ends of each rail, which find each other by a TCP port of the rail's own."""
    surveyed = {each.node: each for each in session.surveyed}
    within, traffic_class = session.settings.tools.within, session.spec.roce.traffic_class
    one, other = (link_tools.ends(each, surveyed[each.name], transport, within) for each in (sender, receiver))
    return [
        (
            replace(out, traffic_class=traffic_class, load=load, listens=perftest.PORT + number),
            replace(into, traffic_class=traffic_class, load=load, listens=perftest.PORT + number),
        )
        for number, (out, into) in enumerate(zip(one, other, strict=False))
    ]


def _measure_perftest(session: BenchSession, rail: tuple[End, End]) -> LinkResult:
    sender, receiver = rail
    _in_guests(session, {receiver.node.name}, lambda shell: perftest.serve(shell, receiver, _MARK))
    measured = _in_guests(session, {sender.node.name}, lambda shell: perftest.measure(shell, sender, receiver, _MARK))
    return measured[sender.node.name]


def _in_guests(session: BenchSession, names: Collection[str], work: Callable[[Shell], T]) -> dict[str, T]:
    """Return what the work came to in these nodes' guests, where it runs at the same time."""
    places = [each for each in session.places if each.name in names]
    return in_each(session.guests, places, work)
