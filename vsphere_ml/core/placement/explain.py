"""Why each node sits where it does, and what every other host did not have or had less of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.core.model.locality import rank
from vsphere_ml.core.model.placement import Locality
from vsphere_ml.core.model.spec import Spread
from vsphere_ml.core.placement.candidates.candidates import pair_distance
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vsphere_ml.core.placement.host.host_capacity import NodeCandidate
    from vsphere_ml.core.placement.solve import Choice, HostChoice, Solution

# What lies between a GPU and a NIC, and what is known of its cost. NVIDIA's GPU Operator guide and its reference
# architecture ask for one PCIe root complex; the figure of UPI is from VMware's articles on machine learning.
COSTS = {
    Locality.SAME_SWITCH: "GPUDirect RDMA stays below the PCIe switch",
    Locality.SAME_ROOT: "GPUDirect RDMA goes through the root complex that GPU and NIC share, as NVIDIA asks for",
    Locality.SAME_NUMA: "GPUDirect RDMA would cross root complexes; NVIDIA asks for a common one",
    Locality.CROSS_NUMA: "traffic crosses the sockets' interconnect (about 40 GB/s on UPI, shared with all memory "
    "traffic); NVIDIA asks for a common root complex",
    Locality.UNKNOWN: "the host does not say how far GPU and NIC are apart",
}


_LATER = "is as good, and comes later by name"
_GIVEN_UP = "suits as well or better, but then another node would find no place; the search moved on"


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A host that could have been the one; `verdict` is why it was not."""

    host: str
    fits: bool
    verdict: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """One node's placement: why this host, how far its devices are apart and what that costs, and who lost."""

    node: str
    host: str
    why: str
    locality: Locality
    cost: str
    losers: tuple[Candidate, ...]


def explain(solution: Solution) -> tuple[Explanation, ...]:
    """Return every node's explanation, in the order they were placed."""
    return tuple(_explain_choice(choice, solution.found.spec.spread) for choice in solution.choices())


def _explain_choice(choice: Choice, spread: Spread) -> Explanation:
    option = choice.option
    return Explanation(
        node=choice.node.name,
        host=choice.host,
        why=option.why,
        locality=option.locality,
        cost=COSTS[option.locality] if option.nic is not None else "",
        losers=tuple(_losers(choice, spread)),
    )


def _losers(choice: Choice, spread: Spread) -> Iterator[Candidate]:
    winner = next((each for each in choice.hosts if each.host == choice.host), None)
    passed = False  # those after the winner come later by name
    for each in choice.hosts:
        passed = passed or each is winner
        if winner is None or each is winner:
            continue
        if not each.candidates.options:
            words = "; ".join(map(str, each.candidates.reasons))
            yield Candidate(host=each.host, fits=False, verdict=words)
        else:
            verdict = _worse(each, winner, choice.option, spread) or (_LATER if passed else _GIVEN_UP)
            yield Candidate(host=each.host, fits=True, verdict=verdict)


def _worse(loser: HostChoice, winner: HostChoice, took: NodeCandidate, spread: Spread) -> str:
    """Return by what a host lost: by neighbours, by how near its devices are, by what it breaks; empty for none."""
    has = loser.candidates.options[0]
    more, fewer = (loser.nodes, winner.nodes) if spread is Spread.SPREAD else (winner.nodes, loser.nodes)
    if more > fewer:
        return f"has {_nodes(loser.nodes)}, {winner.host} {_nodes(winner.nodes)}; the file asks to {spread}"
    if more < fewer or pair_distance(has) < pair_distance(took):
        return _GIVEN_UP
    if pair_distance(has) > pair_distance(took):
        return _farther(has, took)
    if spread is Spread.PACK and has.breaks != took.breaks:
        larger = f"would break a group of {has.breaks} free GPUs, {winner.host} one of {took.breaks}"
        return larger if has.breaks > took.breaks else _GIVEN_UP
    return ""


def _farther(has: NodeCandidate, took: NodeCandidate) -> str:
    if len(has.prerequisites) > len(took.prerequisites):
        return f"must be made ready first: {', '.join(sorted(has.prerequisites))}"
    if has.pairing is not took.pairing:
        return f"would give it by {has.pairing}, not by {took.pairing}"
    if rank(has.locality) > rank(took.locality):
        return f"has GPU and NIC farther apart: {has.locality}"
    return has.note or "has no NUMA node for it"


def _nodes(number: int) -> str:
    return f"{number} node{'' if number == 1 else 's'} of this cluster"
