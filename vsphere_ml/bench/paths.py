"""What the bytes between ranks went by: read from NCCL's own log, or from the sockets and counters of each rank.

NCCL's line is that of src/transport/net.cc, p2p.cc and shm.cc, read in every release from 2.3 to 2.30:
`Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0/GDRDMA`. Up to 2.6 it begins with `Ring`; up to 2.4 the ranks of a
network's line have no brackets; up to 2.3 it does not tell its side. A network plugin puts its own name there: that of
HPC-X, in NVIDIA's images, is IBext, IBext_v8 and so on, and speaks verbs as NCCL's own IB does. UCX and others may take
RDMA or TCP, and NCCL's line does not tell which.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from vsphere_ml.bench import rdma
from vsphere_ml.bench.figures import amount
from vsphere_ml.bench.launchers import NCCL
from vsphere_ml.bench.record import Path, Proof, Transport, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from vsphere_ml.bench.job import Job
    from vsphere_ml.bench.lines import Told
    from vsphere_ml.bench.survey import Surveyed

PATH = "path"
_CHANNEL = re.compile(
    r"(?:Channel|Ring) (?P<channel>\d+)(?:/\d+)? : (?P<sender>\d+)(?:\[\w*\])? -> (?P<receiver>\d+)(?:\[\w*\])?"
    r"(?: \[(?P<side>send|receive)\])? via (?P<via>\S.*)"
)
_BEGINS = re.compile(r"(?=(?:Channel|Ring) \d+(?:/\d+)? : )")  # a launcher may run the lines of several ranks together
_NET = re.compile(r"NET/(?P<name>.+?)/\d+(?:\(\d+\))?(?P<how>\S*)")
_VERBS = re.compile(r"IB(ext\w*)?|NCCL RDMA Plugin\b.*")
# What NCCL itself logs of why it does not use RDMA or GPUDirect (src/transport/net_ib.cc, graph/paths.cc). 2.30 tells
# of each name by which it does not find the library: only that of the last, libibverbs.so.1, means that there is none.
_ADMITTED = re.compile(
    r"(?P<why>NET/IB : No device found|Failed to open libibverbs\S*|Count not open libibverbs\.so\.1"
    r"|GPU Direct RDMA Disabled for (?:HCA|GPU)[^\n]*)"
)
_TELLS = {"INFO", "TRACE"}  # NCCL_DEBUG's levels that log channels
_SOCKET, _RDMA = "NET/Socket", ("NET/IB", "NET/IB/GDRDMA")
_WANTED = {Transport.ROCE: _RDMA, Transport.GPUDIRECT: _RDMA[1:]}
_NO_CHANNEL = "the log tells no channel between nodes"
_SHARED_MEMORY = "direct shared memory"  # NCCL up to 2.12; SHM/direct since


def of_nccl(log: str) -> tuple[Path, ...]:
    """Return each channel's carrier as NCCL logged it, with NCCL_DEBUG=INFO."""
    return tuple(
        Path(
            channel=f"{match['channel']}{f' {side}' if (side := match['side']) else ''}",
            sender=match["sender"],
            receiver=match["receiver"],
            carrier=carrier(match["via"]),
            evidence=line,
        )
        for line in _one_channel_each(log)
        if (match := _CHANNEL.search(line))
    )


def _one_channel_each(log: str) -> Iterator[str]:
    for line in log.splitlines():
        before, *channels = _BEGINS.split(line.strip())
        yield from (channels if len(channels) > 1 else [before + "".join(channels)])


def carrier(via: str) -> str:
    """Return the kind of a way: of NET/IB/0(1)/GDRDMA/Shared what counts is NET/IB/GDRDMA."""
    net = _NET.match(via)
    if via.startswith(_SHARED_MEMORY):
        return "SHM"
    if net is None:
        return re.split(r"[/\s]", via, maxsplit=1)[0]
    name = "IB" if _VERBS.fullmatch(net["name"]) else net["name"]
    return f"NET/{name}{'/GDRDMA' if '/GDRDMA' in net['how'] else ''}"


def of_sockets(job: Job, told: Sequence[Told]) -> tuple[Path, ...]:
    """Return the TCP connections that ranks held to other nodes, as each rank's kernel told.

    None where NCCL carries the collectives: its ranks hold MPI's sockets too.
    """
    if job.configuration.backend == NCCL:
        return ()
    nodes = {node.address: node.name for node in job.nodes}
    return tuple(
        Path(
            channel="tcp",
            sender=str(each.rank),
            receiver=nodes[peer["other"]],
            carrier=f"{job.configuration.backend}/tcp",
            evidence=f"rank {each.rank} on {each.node}: {peer['own']} to {peer['other']}, {peer['sockets']} sockets; "
            f"{_sent(each)}",
        )
        for each in told
        for peer in each.peers
        if nodes.get(peer["other"], each.node) != each.node
    )


def proof(
    job: Job, told: Sequence[Told], paths: Sequence[Path], surveyed: Sequence[Surveyed], log: str = ""
) -> Proof | None:
    """Return whether what was asked for was used between nodes; None on one node, where nothing goes anywhere.

    Causes are what the guests show and what NCCL's log admits.
    """
    if len(job.nodes) < 2:  # noqa: PLR2004 - nobody to talk to
        return None
    asked = job.configuration.transport
    between = [each for each in paths if _crosses(each, told)]
    # The sockets of MPI and of Horovod's controller say nothing of what NCCL used.
    by_nccl = any(each.carrier.startswith("NET/") for each in between)
    if asked is Transport.TCP and (by_nccl or job.configuration.backend != NCCL):
        return _over_tcp(job, told, paths)
    if not by_nccl and not (between and _without_nccl(told)):
        return Proof(name=PATH, verdict=Verdict.UNKNOWN, evidence=_silenced(job) or _NO_CHANNEL)
    wrong = _wrong(asked, between)
    causes = "; ".join([*_admitted(log), *_causes(asked, wrong, surveyed)]) or "the guests show no cause"
    judged = _judged(asked, between, causes)
    missing = _not_covered(between, told) if judged.verdict is Verdict.YES else ""
    return Proof(name=PATH, verdict=Verdict.UNKNOWN, evidence=missing) if missing else judged


def of_import(asked: Transport, went: Sequence[Path], log: str) -> Proof | None:
    """Return whether another tool's log shows what a person says it was; None where it tells no channel of a network.

    That TCP is no RDMA nobody says: it is what is taken where nothing is said.
    """
    between = [each for each in went if each.carrier.startswith("NET/")]
    if asked is Transport.TCP or not between:
        return None
    return _judged(asked, between, "; ".join(_admitted(log)) or "another --transport is meant")


def _without_nccl(told: Sequence[Told]) -> bool:
    """Return whether every rank says that its Horovod was built without NCCL, so that its sockets carried the data."""
    return all("nccl" not in each.model.get("built", ("nccl",)) for each in told)


def _wrong(asked: Transport, between: Sequence[Path]) -> list[Path]:
    return [each for each in between if each.carrier not in _WANTED[asked] and not _of_plugin(each)]


def _of_plugin(path: Path) -> bool:
    """Return whether the channel is that of a network plugin which may take RDMA or TCP, such as UCX."""
    return path.carrier.startswith("NET/") and path.carrier not in {_SOCKET, *_RDMA}


def _not_covered(between: Sequence[Path], told: Sequence[Told]) -> str:
    """Return which nodes' channels the log lacks; a log that was cut tells only some. Empty when it has all."""
    nodes = {str(each.rank): each.node for each in told}
    every = dict.fromkeys(nodes.values())
    sending = {nodes.get(each.sender) for each in between}
    receiving = {nodes.get(each.receiver) for each in between}
    missing = [node for node in every if node not in sending & receiving]
    return f"the log does not tell both directions of {', '.join(missing)}" if missing else ""


def _judged(asked: Transport, between: Sequence[Path], causes: str) -> Proof:
    if wrong := _wrong(asked, between):
        evidence = f"{len(wrong)} of {len(between)} channels went by {_carriers(wrong)}; likely: {causes}"
        return Proof(name=PATH, verdict=Verdict.NO, evidence=evidence)
    if plugins := [each for each in between if _of_plugin(each)]:
        evidence = f"{len(plugins)} of {len(between)} channels went by {_carriers(plugins)}, which may be RDMA or TCP"
        return Proof(name=PATH, verdict=Verdict.UNKNOWN, evidence=evidence)
    evidence = f"all {len(between)} channels between nodes went by {_carriers(between)}"
    return Proof(name=PATH, verdict=Verdict.YES, evidence=evidence)


def _carriers(paths: Sequence[Path]) -> str:
    return " and ".join(dict.fromkeys(each.carrier for each in paths))


def _silenced(job: Job) -> str:
    """Return what keeps NCCL from logging its channels, so that sockets beside it show nothing; empty when nothing."""
    level = job.variables.get("NCCL_DEBUG", "INFO")
    if level.upper() not in _TELLS:
        return f"NCCL_DEBUG={level} keeps NCCL from telling its channels"
    return "NCCL_DEBUG_FILE takes NCCL's lines elsewhere" if "NCCL_DEBUG_FILE" in job.variables else ""


def _over_tcp(job: Job, told: Sequence[Told], paths: Sequence[Path]) -> Proof:
    otherwise = [each for each in paths if each.carrier.startswith("NET/") and each.carrier != _SOCKET]
    if otherwise:
        return Proof(name=PATH, verdict=Verdict.NO, evidence=f"TCP was asked for: {otherwise[0].evidence}")
    own = {node.name: node.address for node in job.nodes}
    elsewhere = [
        f"rank {each.rank}: {peer['own']}" for each in told for peer in each.peers if peer["own"] != own[each.node]
    ]
    if elsewhere:
        evidence = f"sockets are not on {job.interface}: {', '.join(elsewhere)}"
        return Proof(name=PATH, verdict=Verdict.NO, evidence=evidence)
    silent = [each.rank for each in told if not any(path.sender == str(each.rank) for path in paths)]
    if silent:
        evidence = f"no connection to another node was seen of ranks {', '.join(map(str, silent))}"
        return Proof(name=PATH, verdict=Verdict.UNKNOWN, evidence=evidence)
    sent = ", ".join(f"rank {each.rank}: {_sent(each)}" for each in told)
    return Proof(name=PATH, verdict=Verdict.YES, evidence=f"TCP over {job.interface}; {sent}")


def _sent(told: Told) -> str:
    """Return what the rank's guest sent meanwhile; ranks of one guest tell the same bytes."""
    name = str(told.interface.get("name", ""))
    return f"{amount(told.sent.get(name, 0))} sent by {name or 'no interface'}"


def _crosses(path: Path, told: Sequence[Told]) -> bool:
    nodes = {str(each.rank): each.node for each in told}
    return nodes.get(path.sender) != nodes.get(path.receiver)


def _admitted(log: str) -> list[str]:
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
    if asked is Transport.GPUDIRECT:
        yield from _without_gpudirect(wrong, surveyed)


def _without_gpudirect(wrong: Sequence[Path], surveyed: Sequence[Surveyed]) -> Iterator[str]:
    for each in surveyed:
        if not each.peermem and not each.dma_buf:
            yield f"{each.node} has neither nvidia-peermem nor a driver with DMA-BUF"
        if each.ats is False:
            yield f"ATS is not effective in {each.node} (lspci shows ATSCtl: Enable-)"
        if each.gpu_to_nic in {"SYS", "NODE", "PHB"}:
            yield f"{each.node} sees GPU and NIC as {each.gpu_to_nic}: the VM's PCI topology is flat"
    if all(path.channel.endswith("send") and path.carrier == _RDMA[0] for path in wrong):
        yield "only the sending side lacks it: NCCL_NET_GDR_READ is 0"
