"""What is true of a finished node: read-only, asked in one round trip, with evidence and the command that gave it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from vsphere_ml.guest import judge
from vsphere_ml.guest.steps import driver, licence, rdma
from vsphere_ml.guest.steps.containers import inside
from vsphere_ml.guest.steps.shell import q, words

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from vsphere_ml.core.guest import Answer, GuestFacts, Probe
    from vsphere_ml.guest.judge import Judgement, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One fact of one node: how it stands, what was seen, and what to type in the guest to see it again."""

    node: str
    fact: str
    verdict: Verdict
    evidence: str
    command: str
    lab: bool = False  # seen on a stand-in, so it says nothing about hardware


@dataclass(frozen=True, slots=True)
class _Fact:
    name: str
    command: Callable[[GuestFacts], str]
    judge: Callable[[Answer, GuestFacts], Judgement]


def verify(probe: Probe, facts: GuestFacts) -> tuple[Evidence, ...]:
    """Return what was seen of every fact that concerns the node, in one round trip and without a change."""
    asked = (*(_OF_GPUS if facts.gpus else ()), *_OF_ALL)
    commands: Mapping[str, str] = {fact.name: fact.command(facts) for fact in asked}
    seen = probe.ask(commands)
    return tuple(_evidence(fact, commands[fact.name], seen[fact.name], facts) for fact in asked)


def _evidence(fact: _Fact, command: str, answer: Answer, facts: GuestFacts) -> Evidence:
    verdict, evidence = fact.judge(answer, facts)
    return Evidence(
        node=facts.name,
        fact=fact.name,
        verdict=verdict,
        evidence=f"lab: {evidence}" if facts.lab else evidence,
        command=command,
        lab=facts.lab,
    )


def _always(command: str) -> Callable[[GuestFacts], str]:
    return lambda _: command


def _mesh(facts: GuestFacts) -> str:
    """Go to every node at once, as the user of the mesh, and say who was reached."""
    user = facts.values.get("mesh_user", "root")
    port = f" -p {q(facts.values['ssh_port'])}" if "ssh_port" in facts.values else ""
    go = f"runuser -u {q(user)} -- ssh -n -o BatchMode=yes -o ConnectTimeout=10{port}"
    names = words(peer.name for peer in facts.peers)
    each = f'{go} "$node" true >/dev/null 2>&1 && echo "$node reached" || echo "$node not reached"'
    return f"for node in {names}; do ({each}) & done; wait"


def _query(*fields: str) -> Callable[[GuestFacts], str]:
    return _always(f"nvidia-smi --query-gpu={','.join(fields)} --format=csv,noheader")


def _memlock(facts: GuestFacts) -> str:
    return f"su - {q(facts.values.get('mesh_user', 'root'))} -c 'ulimit -l'"


_OF_GPUS = (
    _Fact("GPUs and profile", _query("name"), judge.gpus),
    _Fact("driver branch", _always(driver.VERSION), judge.branch),
    _Fact("licence", _always(licence.STATE), judge.licence),
    _Fact("ECC", _query("ecc.mode.current", "ecc.errors.uncorrected.volatile.total"), judge.ecc),
    _Fact("GPU clocks", _query("clocks.current.sm", "clocks.max.sm"), judge.clocks),
    _Fact("GPU and NIC distance", _always("nvidia-smi topo -m"), judge.distance),
    _Fact(
        "GPUDirect RDMA",
        _always("uname -r; modinfo -F license nvidia; lsmod | grep '^nvidia_peermem '"),
        judge.gpudirect,
    ),
    _Fact("GPU in the container", _always(inside("nvidia-smi -L")), judge.container),
)
_OF_ALL = (
    _Fact("ATS", _always("lspci -d 15b3: -vvv | grep ATSCtl"), judge.ats),
    _Fact("RDMA device", _always("ibv_devinfo"), judge.rdma_device),
    _Fact("RoCE GID", rdma.gids, judge.gid),
    _Fact("locked memory", _memlock, judge.memlock),
    _Fact("time", _always("timedatectl show -p NTPSynchronized --value; date -u +%FT%TZ"), judge.time),
    _Fact("SSH mesh", _mesh, judge.mesh),
)
