"""A pod's script, run by this machine's own shell: each answer with its status, output and errors."""

from __future__ import annotations

import subprocess
from dataclasses import replace

import pytest

from tests.unit.kubernetes.export.exports import VALUES
from vsphere_ml.core.model.guest import CommandAnswer
from vsphere_ml.kubernetes.cluster.probe_pod import (
    CONTAINER,
    NodeQuestions,
    make_probe_pod,
    make_script,
    parse_answers,
)

QUESTIONS = {
    "plain": "echo one; echo two",
    "it's odd": "echo '| = ? !'; echo = 7; echo ? plain",
    "failed": "echo out; echo err >&2; exit 3",
    "killed": "kill -9 $$; kill -9 $PPID; false",
    "unended": "printf x",
    "silent": ":",
}
ASKED = NodeQuestions(node="node-01", commands={"a": "true"}, gpus=2, rdma=True)


def ask(questions: dict[str, str]) -> dict[str, CommandAnswer]:
    done = subprocess.run(["sh", "-c", make_script(questions)], capture_output=True, text=True, check=False)
    return parse_answers(done.stdout)


def test_answers_come_back_as_they_were_given() -> None:
    found = ask({name: command for name, command in QUESTIONS.items() if name != "killed"})
    assert found == {
        "plain": CommandAnswer(0, "one\ntwo"),
        "it's odd": CommandAnswer(0, "| = ? !\n= 7\n? plain"),
        "failed": CommandAnswer(3, "out", "err"),
        "unended": CommandAnswer(0, "x"),
        "silent": CommandAnswer(0, ""),
    }


def test_what_was_answered_before_a_pod_was_cut_counts() -> None:
    script = make_script({"first": "echo 1", "second": "kill -9 $$", "third": "echo 3"})
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False)
    assert parse_answers(done.stdout) == {"first": CommandAnswer(0, "1")}


@pytest.mark.parametrize("log", ["", "= 0\n", "? a\n= x\n", "| a\n! b\n", "\x00\n? a\n"])
def test_a_log_of_something_else_has_no_answers(log: str) -> None:
    assert parse_answers(log) == {}


def test_a_pod_asks_for_what_a_worker_does_and_ends_by_itself() -> None:
    pod = make_probe_pod(replace(VALUES, name="train-verify-0"), ASKED, {"vsml/verify": "train-verify"})
    (container,) = pod["spec"]["containers"]
    assert container["name"] == CONTAINER
    assert container["resources"]["limits"] == {"nvidia.com/gpu": 2, VALUES.rdma_resource: 1}
    assert container["securityContext"]["capabilities"]["add"] == ["IPC_LOCK"]
    assert pod["metadata"]["annotations"]["k8s.v1.cni.cncf.io/networks"] == "roce"
    assert (pod["spec"]["restartPolicy"], pod["spec"]["activeDeadlineSeconds"]) == ("Never", 1800)


def test_a_pod_without_gpus_and_rdma_asks_for_nothing_that_a_namespace_may_forbid() -> None:
    pod = make_probe_pod(VALUES, replace(ASKED, gpus=0, rdma=False), {})
    (container,) = pod["spec"]["containers"]
    assert {"resources", "securityContext"} & {*container} == set()
