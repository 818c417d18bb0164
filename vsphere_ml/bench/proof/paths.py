"""What the bytes between ranks went by: read from NCCL's own log, or from the sockets and counters of each rank."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import field, replace
from typing import TYPE_CHECKING

from vsphere_ml.bench.model.figures import amount
from vsphere_ml.bench.model.launcher_names import Backend
from vsphere_ml.bench.model.record import Path, Proof, Verdict
from vsphere_ml.bench.model.transports.transport_spec import IB, IB_GPUDIRECT, SOCKET
from vsphere_ml.bench.probe import rdma
from vsphere_ml.bench.proof import channels
from vsphere_ml.bench.proof.channels import NET, RECEIVE, SEND
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from vsphere_ml.bench.model.job import Job
    from vsphere_ml.bench.model.rank_log import RankLog
    from vsphere_ml.bench.model.transports import Transport
    from vsphere_ml.bench.probe.survey import Surveyed

PATH = "path"
# What NCCL itself logs of why it does not use RDMA or GPUDirect (src/transport/net_ib.cc, graph/paths.cc). 2.30 logs
# of each name by which it does not find the library: only that of the last, libibverbs.so.1, means that there is none.
_ADMITTED = re.compile(
    r"(?P<why>NET/IB : No device found|Failed to open libibverbs\S*|Count not open libibverbs\.so\.1"
    r"|GPU Direct RDMA Disabled for (?:HCA|GPU)[^\n]*)"
)
_CHANNEL_LEVELS = {"INFO", "TRACE"}  # NCCL_DEBUG's levels that log channels
INFINIBAND = "IB"  # as NCCL names it after a port, where it says RoCE of Ethernet (src/transport/net_ib.cc)
_INSIDE = {"P2P", "SHM"}  # by these NCCL joins ranks of one node, or of one NVLink domain
_NO_CHANNEL = "the log tells no channel between nodes"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobNodes:
    """The nodes of a job, and what shows which of them logged a channel's line."""

    count: int
    of_host: Mapping[str, str] = field(default_factory=dict)  # node by host name; empty where nobody lists them
    of_rank: Mapping[str, str] = field(default_factory=dict)  # node by rank, of the job's own communicator
    link_layer: str = ""  # of the ports that NCCL was given, by the guests' kernels

    @classmethod
    def of_ranks(cls, logs: Sequence[RankLog]) -> JobNodes:
        """Return the nodes whose guests the ranks' files lay in."""
        nodes = {each.node for each in logs}
        hosts = {_shorten(each.hostname): each.node for each in logs if each.hostname}
        by_rank = {str(each.rank): each.node for each in logs}
        # Guests that have one name, such as clones of a template, are not distinguished by it.
        return cls(count=len(nodes), of_host=hosts if len(hosts) == len(nodes) else {}, of_rank=by_rank)

    @classmethod
    def of_devices(cls, count: int, hosts: Mapping[int, str]) -> JobNodes:
        """Return as many nodes as there were; `hosts` has the host of each rank, where the log lists them."""
        names = {_shorten(host) for host in hosts.values()}
        by_host = {name: name for name in names} if len(names) == count else {}
        return cls(count=count, of_host=by_host, of_rank={str(rank): _shorten(host) for rank, host in hosts.items()})

    def logged(self, path: Path) -> str:
        """Return the node that logged a channel's line; empty where unknown."""
        if path.host:
            return self.of_host.get(path.host, "") if self.of_host else path.host
        return self.of_rank.get(path.receiver if _side(path) == RECEIVE else path.sender, "")

    def find_crossing(self, paths: Sequence[Path]) -> list[Path]:
        """Return the channels that may join two nodes: those by a network, unless their ends are on one node."""
        named = len(self.of_host or {each.host for each in paths if each.host}) >= self.count
        return [each for each in paths if self._crosses(each, named=named)]

    def _crosses(self, path: Path, *, named: bool) -> bool:
        """`named`: every node has a host name of its own."""
        if named and path.host and path.other_host:
            return path.host != path.other_host
        ends = [self.of_rank.get(path.sender), self.of_rank.get(path.receiver)]
        if path.carrier.startswith(NET):
            return None in ends or ends[0] != ends[1] or self.logged(path) not in {"", ends[0]}
        return path.carrier not in _INSIDE and ends[0] != ends[1]

    def not_covered(self, between: Sequence[Path]) -> str:
        """Return which nodes the log does not show to send and to receive; empty when it shows all."""
        both = self._logging(between, SEND) & self._logging(between, RECEIVE)
        expected = dict.fromkeys((self.of_host or self.of_rank).values())
        missing = [node for node in expected if node not in both]
        if missing:
            return f"the log does not tell both directions of {', '.join(missing)}"
        if len(both) < self.count:
            return f"the log tells both directions of {len(both)} of {self.count} nodes"
        return ""

    def _logging(self, between: Sequence[Path], side: str) -> set[str]:
        return {node for each in between for end, node in self._shown(each) if end == side and node}

    def _shown(self, path: Path) -> Iterator[tuple[str, str]]:
        """Yield the ends of a channel that its line shows, and their nodes."""
        yield _side(path), self.logged(path)
        if path.other_host and _is_unsided(path):  # no other line names the sending end
            yield SEND, self.of_host.get(path.other_host, "") if self.of_host else path.other_host


def of_sockets(job: Job, logs: Sequence[RankLog]) -> tuple[Path, ...]:
    """Return the TCP connections that ranks held to other nodes, by each rank's kernel.

    None where NCCL carries the collectives: its ranks hold MPI's sockets too.
    """
    if job.configuration.backend == Backend.NCCL:
        return ()
    nodes = {node.address: node.name for node in job.nodes}
    return tuple(
        Path(
            channel="tcp",
            sender=str(each.rank),
            receiver=nodes[peer["other"]],
            carrier=f"{job.configuration.backend}/tcp",
            evidence=f"rank {each.rank} on {each.node}: {peer['own']} to {peer['other']}, {peer['sockets']} sockets; "
            f"{_sent_bytes(each)}",
        )
        for each in logs
        for peer in each.peers
        if nodes.get(peer["other"], each.node) != each.node
    )


def proof(
    job: Job, logs: Sequence[RankLog], paths: Sequence[Path], surveyed: Sequence[Surveyed], log: str = ""
) -> Proof | None:
    """Return whether what was asked for was used between nodes; None on one node, where nothing goes anywhere.

    Causes are what the guests show and what NCCL's log admits.
    """
    if len(job.nodes) < 2:  # noqa: PLR2004 - nobody to talk to
        return None
    asked, nodes = job.configuration.transport, JobNodes.of_ranks(logs)
    if surveyed and all(rdma.rails(each.ports) for each in surveyed):
        nodes = replace(nodes, link_layer="RoCE")
    between = nodes.find_crossing(paths)
    # The sockets of MPI and of Horovod's controller say nothing of what NCCL used.
    by_nccl = any(each.carrier.startswith(NET) for each in between)
    if not asked.spec.rdma and not by_nccl and job.configuration.backend != Backend.NCCL:
        return _over_sockets(job, logs, paths)
    if not by_nccl and not (between and _without_nccl(logs)):
        if (made := _without_rdma(asked, log)) is not None:
            return made
        return Proof(name=PATH, verdict=Verdict.UNKNOWN, evidence=_silencing_variable(job) or _NO_CHANNEL)
    if not asked.spec.rdma and (elsewhere := _elsewhere(job, logs)):
        return Proof(name=PATH, verdict=Verdict.NO, evidence=elsewhere)
    causes = "; ".join([*_nccl_statements(log), *_causes(asked, _wrong_paths(asked, between), surveyed)])
    return _judge_paths(asked, between, nodes, log=log, causes=causes or "the guests show no cause")


def of_import(asked: Transport, went: Sequence[Path], nodes: JobNodes, log: str) -> Proof | None:
    """Return whether another tool's log shows what a person says it was.

    None on one node, for TCP, which is assumed where a log says nothing, and where the log has neither a channel of a
    network nor a line that there was no RDMA.
    """
    between = [each for each in nodes.find_crossing(went) if each.carrier.startswith(NET)]
    if not asked.spec.rdma or nodes.count < 2:  # noqa: PLR2004 - nobody to talk to
        return None
    if not between:
        return _without_rdma(asked, log)
    return _judge_paths(
        asked, between, nodes, log=log, causes="; ".join(_nccl_statements(log)) or "another --transport is meant"
    )


def _without_rdma(asked: Transport, log: str) -> Proof | None:
    """Return that RDMA was not used where NCCL had no device for it; None where it does not say so."""
    said = channels.find_without_rdma(log) if asked.spec.rdma else ""
    if not said or any(channels.find_alternatives(log)):
        return None
    return Proof(name=PATH, verdict=Verdict.NO, evidence=f"NCCL says `{said}`")


def _without_nccl(logs: Sequence[RankLog]) -> bool:
    """Return whether every rank says that its Horovod was built without NCCL, so that its sockets carried the data."""
    return all("nccl" not in each.model.get("built", ("nccl",)) for each in logs)


def _wrong_paths(asked: Transport, between: Sequence[Path]) -> list[Path]:
    return [
        each
        for each in between
        if (each.carrier not in asked.spec.carriers and not _of_plugin(each) and not _may_be_gpudirect(asked, each))
        or (asked.spec.link_layer and channels.link_layer(each.nic) == INFINIBAND)
    ]


def _may_be_gpudirect(asked: Transport, path: Path) -> bool:
    """Return whether the line was cut where it would name GPUDirect: ranks that write to one file cut each other's."""
    return asked.spec.gpu_memory and path.carrier == IB and path.cut


def _of_plugin(path: Path) -> bool:
    """Return whether the channel is that of a network plugin which may take RDMA or TCP, such as UCX."""
    return path.carrier.startswith(NET) and path.carrier not in {SOCKET, IB, IB_GPUDIRECT}


def _judge_paths(asked: Transport, between: Sequence[Path], nodes: JobNodes, *, log: str, causes: str) -> Proof:
    if wrong := _wrong_paths(asked, between):
        evidence = f"{len(wrong)} of {len(between)} channels went by {_carriers(wrong)}{_nics(wrong)}; likely: {causes}"
        evidence = evidence if asked.spec.rdma else f"TCP was asked for: {wrong[0].evidence}"
        return Proof(name=PATH, verdict=Verdict.NO, evidence=evidence)
    if unsure := "; ".join(_unsure(asked, between, nodes, log)):
        return Proof(name=PATH, verdict=Verdict.UNKNOWN, evidence=unsure)
    evidence = f"all {len(between)} channels between nodes went by {_carriers(between)}{_nics(between)}"
    return Proof(name=PATH, verdict=Verdict.YES, evidence=evidence)


def _unsure(asked: Transport, between: Sequence[Path], nodes: JobNodes, log: str) -> Iterator[str]:
    """Yield why channels of the right kind do not show that all bytes went so."""
    if plugins := [each for each in between if _of_plugin(each)]:
        yield f"{len(plugins)} of {len(between)} channels went by {_carriers(plugins)}, which may be RDMA or TCP"
    elif missing := nodes.not_covered(between):
        yield missing
    if cut := [each for each in between if _may_be_gpudirect(asked, each)]:
        yield f"the lines of {len(cut)} of {len(between)} channels are cut where GDRDMA would stand"
    verbs = [each for each in between if each.carrier in {IB, IB_GPUDIRECT}]
    layers = {channels.link_layer(each.nic) or nodes.link_layer for each in verbs}
    if asked.spec.link_layer and layers - {asked.spec.link_layer}:
        yield f"NCCL does not say that its ports are {asked.spec.link_layer}: NET/IB is InfiniBand's as well"
    yield from channels.find_alternatives(log)
    if asked.spec.gpu_memory and any(map(_is_unsided, between)):
        yield "NCCL up to 2.3 does not tell what memory the sending end used"


def _side(path: Path) -> str:
    """Return the end that logged the channel's line: the sending one, unless a network's line says otherwise."""
    _, _, side = path.channel.partition(" ")
    return side or (RECEIVE if path.carrier.startswith(NET) else SEND)


def _is_unsided(path: Path) -> bool:
    return path.carrier.startswith(NET) and " " not in path.channel


def _shorten(hostname: str) -> str:
    """Return a host's name as NCCL logs it, without its domain."""
    return hostname.partition(".")[0]


def _nics(between: Sequence[Path]) -> str:
    """Return the NICs that these channels used, and how many of them each; empty where the log does not say."""
    counted = Counter(each.nic for each in between if each.nic)
    return "".join([" on ", ", ".join(f"{nic} ({count})" for nic, count in sorted(counted.items()))] if counted else [])


def _carriers(paths: Sequence[Path]) -> str:
    return " and ".join(dict.fromkeys(each.carrier for each in paths))


def _silencing_variable(job: Job) -> str:
    """Return what keeps NCCL from logging its channels, so that sockets beside it show nothing; empty when nothing."""
    level = job.variables.get("NCCL_DEBUG", "INFO")
    if level.upper() not in _CHANNEL_LEVELS:
        return f"NCCL_DEBUG={level} keeps NCCL from telling its channels"
    return "NCCL_DEBUG_FILE takes NCCL's lines elsewhere" if "NCCL_DEBUG_FILE" in job.variables else ""


def _over_sockets(job: Job, logs: Sequence[RankLog], paths: Sequence[Path]) -> Proof:
    """Return whether each rank of a job without NCCL held a connection to another node on the chosen interface."""
    if elsewhere := _elsewhere(job, logs):
        return Proof(name=PATH, verdict=Verdict.NO, evidence=elsewhere)
    silent = [each.rank for each in logs if not any(path.sender == str(each.rank) for path in paths)]
    if silent:
        evidence = f"no connection to another node was seen of ranks {', '.join(map(str, silent))}"
        return Proof(name=PATH, verdict=Verdict.UNKNOWN, evidence=evidence)
    sent = ", ".join(f"rank {each.rank}: {_sent_bytes(each)}" for each in logs)
    return Proof(name=PATH, verdict=Verdict.YES, evidence=f"TCP over {job.interface}; {sent}")


def _elsewhere(job: Job, logs: Sequence[RankLog]) -> str:
    """Return which sockets of ranks are not on the chosen interface; empty when all are."""
    own = {node.name: node.address for node in job.nodes}
    strays = [
        f"rank {each.rank}: {peer['own']}" for each in logs for peer in each.peers if peer["own"] != own[each.node]
    ]
    return f"sockets are not on {job.interface}: {', '.join(strays)}" if strays else ""


def _sent_bytes(log: RankLog) -> str:
    """Return what the rank's guest sent meanwhile; ranks of one guest count the same bytes."""
    name = str(log.interface.get("name", ""))
    return f"{amount(log.sent.get(name, 0))} sent by {name or 'no interface'}"


def _nccl_statements(log: str) -> list[str]:
    """Return what NCCL says of it, once however many ranks say so."""
    return [f"NCCL says `{why}`" for why in dict.fromkeys(match["why"].strip() for match in _ADMITTED.finditer(log))]


def _causes(asked: Transport, wrong: Sequence[Path], surveyed: Sequence[Surveyed]) -> Iterator[str]:
    """Yield what the guests can show for it, those that keep RDMA out before those that keep GPUDirect out."""
    for each in surveyed:
        if not each.ports:
            yield f"{each.node} has no RDMA device"
        elif not rdma.rails(each.ports):
            yield f"{each.node} has no active RDMA port with a RoCE v2 GID"
    mtu = {each.mtu[name] for each in surveyed for name in rdma.interfaces(each.ports) if name in each.mtu}
    if len(mtu) > 1:
        yield f"the MTU differs between nodes: {', '.join(map(str, sorted(mtu)))}"
    if asked.spec.gpu_memory:
        yield from _without_gpudirect(wrong, surveyed)


def _without_gpudirect(wrong: Sequence[Path], surveyed: Sequence[Surveyed]) -> Iterator[str]:
    for each in surveyed:
        if not each.peermem and not each.dma_buf:
            yield f"{each.node} has neither nvidia-peermem nor a driver with DMA-BUF"
        if each.ats is False:
            yield f"ATS is not effective in {each.node} (lspci shows ATSCtl: Enable-)"
        if each.gpu_to_nic in {"SYS", "NODE", "PHB"}:
            yield f"{each.node} sees GPU and NIC as {each.gpu_to_nic}: the VM's PCI topology is flat"
    if all(path.channel.endswith("send") and path.carrier == IB for path in wrong):
        yield "off on the sending side only: NCCL_NET_GDR_READ is 0"
