"""What is true of a finished node: read-only, asked in one round trip, with evidence and the command that gave it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from vsphere_ml.core.diagnostics import Diagnostic
from vsphere_ml.core.nodes.container import command_in_container
from vsphere_ml.core.tools import nvidia_smi
from vsphere_ml.guest.facts import judge
from vsphere_ml.guest.steps.gpu import driver, licence
from vsphere_ml.guest.steps.network import rdma
from vsphere_ml.guest.steps.system.shell import q, words
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from vsphere_ml.core.model.guest import CommandAnswer, GuestFacts, Probe
    from vsphere_ml.guest.facts.judge import Judgement
    from vsphere_ml.guest.facts.wanted import ExpectedSteps
    from vsphere_ml.guest.steps.mpi.containers import ContainerSshd

# All nodes ask at the same time, and an sshd as it comes drops sign-ins at random once ten wait (`MaxStartups
# 10:30:100`). Who waits for no answer before the next node is kept by none that is silent.
_APART_S = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence(Diagnostic):
    """One fact of one node: how it is, what was seen, and what to type in the guest to see it again.

    OK, ERROR, WARNING where training runs all the same and less well, or UNKNOWN where nothing answered, or nothing
    says what would be right.
    """

    fact: str
    command: str
    lab: bool = False  # seen on a stand-in, so it says nothing about hardware


@dataclass(frozen=True, slots=True)
class Fact:
    """What is asked, how, and who judges the answer."""

    name: str
    command: str
    judge: Callable[[CommandAnswer, GuestFacts], Judgement]


def verify(probe: Probe, facts: GuestFacts, wanted: ExpectedSteps) -> tuple[Evidence, ...]:
    """Return what was seen of every fact that concerns the node, in one round trip and without a change."""
    asked = tuple(_facts_to_read(facts, wanted))
    seen = probe.ask({fact.name: fact.command for fact in asked})
    return tuple(make_evidence(fact, seen[fact.name], facts) for fact in asked)


def make_evidence(fact: Fact, answer: CommandAnswer, facts: GuestFacts) -> Evidence:
    """Return what an answer means."""
    severity, evidence = fact.judge(answer, facts)
    return Evidence(
        target=facts.name,
        fact=fact.name,
        severity=severity,
        message=f"lab: {evidence}" if facts.lab else evidence,
        command=fact.command,
        lab=facts.lab,
    )


def _facts_to_read(facts: GuestFacts, wanted: ExpectedSteps) -> Iterator[Fact]:
    if facts.gpus:
        yield from _OF_GPUS
    if facts.gpus and facts.profile:
        yield from _OF_VGPUS
    if facts.linked:
        yield Fact("NVLink", nvidia_smi.TOPOLOGY, judge.nvlink)
    if facts.gpus and facts.nic.spec.exists:
        yield from _OF_BOTH
    if facts.nic.spec.exists:
        if not facts.nic.spec.paravirtual:  # no PCI function of a NIC is in the guest
            yield Fact("ATS", "lspci -d 15b3: -vvv | grep ATSCtl", judge.ats)
        yield Fact("RDMA device", "ibv_devinfo", partial(judge.rdma_device, mtu=wanted.roce.mtu))
        for nic in rdma.each(facts):
            name = "RoCE interface" + (f" {nic.roce_number}" if nic.roce_number > 1 else "")
            judged = partial(judge.roce_interface, roce=wanted.roce, nic=nic)
            yield Fact(name, rdma.addresses(nic), judged)
        yield Fact("RoCE GID", rdma.gids(facts), judge.gid)
    user = wanted.mesh.user
    yield Fact("locked memory", f"su - {q(user)} -c 'ulimit -l'", judge.memlock)
    yield Fact("time", "timedatectl show -p NTPSynchronized --value; date -u +%FT%TZ", judge.time)
    yield Fact("SSH mesh", _everywhere(f"runuser -u {q(user)} -- ssh", wanted.mesh.port, facts), judge.mesh)
    for dataset in wanted.datasets:
        where = f"findmnt -n -o FSTYPE,SOURCE --target {q(dataset.path)}"
        judged = partial(judge.dataset, dataset=dataset)
        yield Fact(dataset.title, f"{where}; {dataset.question}", judged)
    if wanted.container:
        yield from _of_container(wanted.container, facts)


def _of_container(container: ContainerSshd, facts: GuestFacts) -> Iterator[Fact]:
    if facts.gpus:
        yield Fact("GPU in the container", command_in_container(nvidia_smi.LIST), judge.container)
    if container.port:
        yield Fact(
            "SSH mesh of containers", command_in_container(_everywhere("ssh", container.port, facts)), judge.mesh
        )


def _everywhere(ssh: str, port: int, facts: GuestFacts) -> str:
    """Go to one node after another, each node to another one first, and say who was reached."""
    go = f'{ssh} -n -o BatchMode=yes -o ConnectTimeout=10 -p {port} "$node" true'
    names = words(_start_after(facts.name, [peer.name for peer in facts.peers]))
    each = f'{go} >/dev/null 2>&1 && echo "$node reached" || echo "$node not reached"'
    return f"for node in {names}; do ({each}) & sleep {_APART_S}; done; wait"


def _start_after(name: str, names: list[str]) -> list[str]:
    """Return the names from the one after this on, and round again."""
    after = names.index(name) + 1 if name in names else 0
    return names[after:] + names[:after]


def _query(*fields: str) -> str:
    return f"nvidia-smi --query-gpu={','.join(fields)} --format=csv,noheader"


NAMES = _query("name")
ECC = _query("ecc.mode.current", "ecc.errors.uncorrected.volatile.total")
CLOCKS = _query("clocks.current.sm", "clocks.max.sm")
_OF_GPUS = (
    Fact("GPUs and profile", NAMES, judge.gpus),
    Fact("ECC", ECC, judge.ecc),
    Fact("GPU clocks", CLOCKS, judge.clocks),
)
_OF_VGPUS = (  # a GPU that is handed through whole has no part in the host's vGPU manager, and no vGPU licence
    Fact("driver branch", driver.VERSION, judge.branch),
    Fact("licence", licence.STATE, judge.licence),
)
_OF_BOTH = (
    Fact("GPU and NIC distance", nvidia_smi.TOPOLOGY, judge.distance),
    Fact("GPUDirect RDMA", "uname -r; modinfo -F license nvidia; lsmod | grep '^nvidia_peermem '", judge.gpudirect),
)
