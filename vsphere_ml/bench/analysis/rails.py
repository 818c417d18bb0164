"""A node's NICs taken together: what all of them carry at once against their line rates, and which NCCL uses."""

from __future__ import annotations

import statistics
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from vsphere_ml.bench.model.record import LinkLoad, Outcome
from vsphere_ml.bench.network.frames import usable_of_link, usable_of_link_result
from vsphere_ml.core.diagnostics import Diagnostic
from vsphere_ml.core.order import count
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from vsphere_ml.bench.model.record import Configuration, Link, LinkResult, Run

_NET = "NET/"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRails:
    """All rails of a node, sending and receiving at the same time as those of all others do."""

    node: str
    tool: str
    rails: tuple[str, ...]
    bytes_per_s: float  # the sum of what it sends
    nominal_bytes_per_s: float | None  # the sum of the line rates; None where one is not known
    usable_bytes_per_s: float | None  # of that without headers

    @property
    def share(self) -> float | None:
        """What it sends as a share of the nominal sum."""
        return None if self.nominal_bytes_per_s is None else self.bytes_per_s / self.nominal_bytes_per_s


@dataclass(frozen=True, slots=True, kw_only=True)
class NicChannels:
    """NCCL's channels between nodes, by the NIC that a node's end of them goes by."""

    configuration: Configuration
    node: str  # as the host calls itself that logged them
    nics: int  # that the node has for them
    channels: tuple[tuple[str, int], ...]  # by NIC


def node_rails(runs: Sequence[Run]) -> tuple[NodeRails, ...]:
    """Return each node that was measured by several rails at once, with the median launch of each tool."""
    found: dict[tuple[str, str, bool], list[NodeRails]] = {}
    for run in runs:
        sent: dict[tuple[str, str, bool], list[LinkResult]] = {}
        for each in run.link_results if run.outcome is Outcome.COMPLETE else ():
            if each.load is LinkLoad.RING and each.device:
                sent.setdefault((each.sender, each.tool, each.gpu_memory), []).append(each)
        for key, links in sent.items():
            if len(links) > 1:
                found.setdefault(key, []).append(_node_rails(links, run))
    return tuple(
        replace(launches[-1], bytes_per_s=statistics.median(each.bytes_per_s for each in launches))
        for launches in found.values()
    )


def _node_rails(links: Sequence[LinkResult], run: Run) -> NodeRails:
    rates = [each.line_rate_bits_per_s or run.link.line_rate_bits_per_s for each in links]
    usable = [usable_of_link_result(each) or usable_of_rail(run.link, run.configuration) for each in links]
    known = [rate for rate in rates if rate is not None]
    left = [rate for rate in usable if rate is not None]
    return NodeRails(
        node=links[0].sender,
        tool=links[0].tool,
        rails=tuple(each.device for each in links),
        bytes_per_s=sum(each.bytes_per_s for each in links),
        nominal_bytes_per_s=sum(known) / 8 if len(known) == len(links) else None,
        usable_bytes_per_s=sum(left) if len(left) == len(links) else None,
    )


def usable_of_rail(link: Link, asked: Configuration) -> float | None:
    """Return what headers leave of one NIC's line rate; None when nobody knows that rate."""
    usable = usable_of_link(link, asked.transport)
    return None if usable is None else usable / link.nics


def nic_channels(runs: Sequence[Run]) -> tuple[NicChannels, ...]:
    """Return each node's channels by NIC, of every configuration over NCCL whose log names NICs."""
    found: dict[tuple[str, str], NicChannels] = {}
    for run in runs:
        counted: dict[str, Counter[str]] = {}
        for path in run.paths if run.outcome is Outcome.COMPLETE else ():
            if path.carrier.startswith(_NET) and path.nic:
                counted.setdefault(path.host, Counter()).update(path.nic.split("+"))
        for host, nics in counted.items():
            found[repr(run.configuration), host] = NicChannels(
                configuration=run.configuration,
                node=host,
                nics=max(run.link.nics, len(nics)),
                channels=tuple(sorted(nics.items())),
            )
    return tuple(found.values())


def find_idle_nics(runs: Sequence[Run]) -> Iterator[Diagnostic]:
    """Yield each node of which NCCL leaves NICs idle."""
    seen: set[tuple[str, tuple[tuple[str, int], ...]]] = set()
    for each in nic_channels(runs):
        if len(each.channels) < each.nics and (each.node, each.channels) not in seen:
            seen.add((each.node, each.channels))
            used = ", ".join(f"{nic} ({channels})" for nic, channels in each.channels)
            total = sum(channels for _, channels in each.channels)
            yield Diagnostic(
                code="bench.idle-nic",
                target=each.node,
                message=f"all {count(total, 'channel')} go by {len(each.channels)} of {each.nics} NICs: {used}",
                hint="NCCL_IB_HCA, NCCL_MIN_NCHANNELS, and which NIC is near which GPU: nvidia-smi topo -m",
            )
