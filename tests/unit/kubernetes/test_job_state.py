"""What pods and events say of a job: what ends it at once, and what may still get better."""

from __future__ import annotations

from typing import Any

import pytest

from vsphere_ml.kubernetes.job_state import find_problems, is_finished, is_launcher, is_over


def pod(name: str = "train-worker-0", role: str = "worker", **status: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": {"training.kubeflow.org/job-role": role}}, "status": status}


def event(reason: str, name: str = "train", kind: str = "Warning") -> dict[str, Any]:
    return {"type": kind, "reason": reason, "message": "why", "involvedObject": {"name": name}}


def waiting(reason: str) -> dict[str, Any]:
    return pod(containerStatuses=[{"image": "none:1", "state": {"waiting": {"reason": reason}}}])


@pytest.mark.parametrize(
    "reason", ["ErrImagePull", "ImagePullBackOff", "InvalidImageName", "CreateContainerConfigError"]
)
def test_a_container_that_never_starts_ends_the_job(reason: str) -> None:
    (found,) = find_problems([waiting(reason)], [], "train")
    assert (found.target, found.final) == ("train-worker-0", True)
    assert reason in found.why


def test_a_container_that_is_being_created_is_no_problem() -> None:
    assert list(find_problems([waiting("ContainerCreating")], [], "train")) == []


@pytest.mark.parametrize(
    ("told", "is_ours"),
    [
        (event("ValidationError"), True),
        (event("FailedCreate", "train-launcher"), True),
        (event("ValidationError", "trainer"), False),
        (event("FailedCreate", kind="Normal"), False),
        (event("BackOff"), False),
    ],
)
def test_refusals_are_those_of_the_job_and_what_it_owns(told: dict[str, Any], is_ours: bool) -> None:  # noqa: FBT001
    assert [each.final for each in find_problems([], [told], "train")] == [True] * is_ours


def test_a_pod_without_room_may_still_get_some() -> None:
    seen = pod(conditions=[{"type": "PodScheduled", "reason": "Unschedulable", "message": "0/2 nodes"}])
    (found,) = find_problems([seen], [], "train")
    assert not found.final


def test_a_worker_that_failed_ends_the_job_and_the_launcher_tells_its_own_end() -> None:
    ended = [{"state": {"terminated": {"exitCode": 137, "reason": "Error"}}}]
    worker, launcher = (pod(role=role, phase="Failed", containerStatuses=ended) for role in ("worker", "launcher"))
    (found,) = find_problems([worker], [], "train")
    assert found.final
    assert "137" in found.why
    assert [each.final for each in find_problems([launcher], [], "train")] == [False]
    assert is_launcher(launcher)
    assert is_over(launcher)


def test_a_worker_that_ended_well_ends_the_job_too_and_a_launcher_does_not() -> None:
    assert [each.final for each in find_problems([pod(phase="Succeeded")], [], "train")] == [True]
    assert list(find_problems([pod(role="launcher", phase="Succeeded")], [], "train")) == []


def test_a_job_is_finished_once_a_condition_says_so() -> None:
    conditions = [{"type": "Created", "status": "True"}, {"type": "Succeeded", "status": "True"}]
    assert is_finished({"status": {"conditions": conditions}})
    assert not is_finished({"status": {"conditions": conditions[:1]}})
    assert not is_finished({"status": {"conditions": [{"type": "Failed", "status": "False"}]}})
