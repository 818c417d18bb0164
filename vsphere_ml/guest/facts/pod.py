"""What a pod sees of its node's hardware: the questions, and what their answers mean."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.core.diagnostics import Severity
from vsphere_ml.core.tools import nvidia_smi
from vsphere_ml.guest.facts import judge
from vsphere_ml.guest.facts.verify import CLOCKS, ECC, NAMES, Fact, make_evidence
from vsphere_ml.guest.steps.gpu import licence

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from vsphere_ml.core.model.guest import CommandAnswer, GuestFacts
    from vsphere_ml.guest.facts.judge import Judgement
    from vsphere_ml.guest.facts.verify import Evidence

# Linux, Documentation/ABI/stable/sysfs-class-infiniband; a device plugin puts the node's devices into /dev/infiniband.
RDMA = (
    'for device in /sys/class/infiniband/*/ports/1/state; do echo "$device $(cat "$device")"; done; ls /dev/infiniband'
)
LOCKED_MEMORY = "ulimit -l; grep ^CapEff: /proc/self/status"
_IPC_LOCK = 1 << 14  # capabilities(7), linux/capability.h


def pod_questions(facts: GuestFacts) -> dict[str, str]:
    """Return the commands that a pod on the node runs, by their facts."""
    return {fact.name: fact.command for fact in _pod_facts(facts)}


def judge_pod(answers: Mapping[str, CommandAnswer], facts: GuestFacts) -> tuple[Evidence, ...]:
    """Return what was seen in a pod; what it did not come to is left out."""
    return tuple(make_evidence(fact, answers[fact.name], facts) for fact in _pod_facts(facts) if fact.name in answers)


def _pod_facts(facts: GuestFacts) -> Iterator[Fact]:
    if facts.gpus:
        yield Fact("pod GPUs", nvidia_smi.LIST, judge.container)
        yield Fact("ECC", ECC, judge.ecc)
        yield Fact("GPU clocks", CLOCKS, judge.clocks)
    if facts.gpus and facts.profile and not facts.lab:  # whose GPUs are of no profile
        yield Fact("GPUs and profile", NAMES, judge.gpus)
    if facts.gpus and facts.profile:
        yield Fact("licence", licence.STATE, judge.licence)
    if facts.nic.spec.function:
        yield Fact("pod RDMA", RDMA, judge_rdma)
    yield Fact("locked memory", LOCKED_MEMORY, judge_locked_memory)


def judge_rdma(answer: CommandAnswer, facts: GuestFacts) -> Judgement:
    """Judge whether a port is active, and the pod may open a device of user space."""
    lines = answer.text.splitlines()
    ports = [line.split("/")[4] for line in lines if line.endswith("ACTIVE") and line.count("/") > 4]  # noqa: PLR2004 - of the path
    verbs = [line for line in lines if line.startswith("uverbs")]
    shown = f"{', '.join(ports) or 'no port'} active; {', '.join(verbs) or 'nothing'} in /dev/infiniband"
    if ports and verbs:
        return Severity.OK, shown
    return (Severity.UNKNOWN if facts.lab else Severity.ERROR), shown


def judge_locked_memory(answer: CommandAnswer, facts: GuestFacts) -> Judgement:
    """Judge how much memory a pod may lock: no limit counts for who has CAP_IPC_LOCK (mlock(2)).

    Without an RDMA device nothing needs it.
    """
    limit, _, rest = answer.text.partition("\n")
    digits = rest.rpartition(":")[2].strip()
    try:
        free = bool(int(digits, 16) & _IPC_LOCK)
    except ValueError:
        return Severity.UNKNOWN, answer.text or "no answer"
    if free:
        return Severity.OK, f"IPC_LOCK: no limit (ulimit -l: {limit})"
    if limit == "unlimited":
        return Severity.OK, limit
    return (Severity.ERROR if facts.nic.spec.function else Severity.OK), f"{limit} KiB, without IPC_LOCK"
