"""What a pod answers of its node's hardware, and what it means."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.guest.cluster import facts
from vsphere_ml.core.diagnostics import Severity
from vsphere_ml.core.model.device_kinds import NicKind
from vsphere_ml.core.model.guest import CommandAnswer
from vsphere_ml.guest.facts.pod import judge_locked_memory, judge_pod, judge_rdma, pod_questions

OK, ERROR, UNKNOWN = Severity.OK, Severity.ERROR, Severity.UNKNOWN
NODE = replace(facts(), nic=NicKind.SRIOV)
ALONE = replace(NODE, nic=NicKind.NONE)
LAB = replace(NODE, lab=True)
PORT = "/sys/class/infiniband/mlx5_0/ports/1/state 4: ACTIVE\n"
ALL, NONE = "CapEff:\t000001ffffffffff", "CapEff:\t00000000a80425fb"  # root's, and containerd's default


@pytest.mark.parametrize(
    ("answer", "node", "severity"),
    [
        (f"65536\n{ALL}", NODE, OK),
        (f"65536\n{NONE}", NODE, ERROR),
        (f"65536\n{NONE}", ALONE, OK),
        (f"unlimited\n{NONE}", NODE, OK),
        ("64", NODE, UNKNOWN),
        ("", NODE, UNKNOWN),
    ],
)
def test_locked_memory_is_free_by_the_limit_or_the_capability(answer: str, node: object, severity: Severity) -> None:
    assert judge_locked_memory(CommandAnswer(0, answer), node)[0] is severity  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("answer", "node", "severity"),
    [
        (f"{PORT}rdma_cm\nuverbs0", NODE, OK),
        (PORT, NODE, ERROR),
        (f"{PORT.replace('4: ACTIVE', '1: DOWN')}uverbs0", NODE, ERROR),
        ("/sys/class/infiniband/*/ports/1/state", NODE, ERROR),
        ("", NODE, ERROR),
        ("", LAB, UNKNOWN),
    ],
)
def test_an_rdma_device_has_an_active_port_and_a_device_of_user_space(
    answer: str, node: object, severity: Severity
) -> None:
    assert judge_rdma(CommandAnswer(0, answer), node)[0] is severity  # type: ignore[arg-type]


def test_every_question_has_its_judgement_and_one_that_was_not_answered_is_left_out() -> None:
    questions = pod_questions(NODE)
    assert {"pod GPUs", "licence", "pod RDMA", "locked memory"} <= {*questions}
    found = judge_pod({name: CommandAnswer(1, "") for name in questions if name != "ECC"}, NODE)
    assert {each.fact for each in found} == {*questions} - {"ECC"}
    assert {each.command for each in found} <= {*questions.values()}
    assert "pod RDMA" not in pod_questions(ALONE)
