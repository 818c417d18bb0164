"""What objects of an MPIJob say of it, judged without a cluster: how far it is, and what it will never get over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from vsphere_ml.core.ports.kubernetes import ApiObject

JOB_LABEL = "training.kubeflow.org/job-name"  # that the operator puts on pods
ROLE_LABEL = "training.kubeflow.org/job-role"
# What a kubelet says of a container that waits for what nobody brings (kubernetes v1.36, pkg/kubelet/images/types.go
# and kuberuntime).
_NEVER_STARTS = frozenset({
    "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "CreateContainerConfigError",
    "CreateContainerError", "RunContainerError", "CrashLoopBackOff",
})  # fmt: skip
# Events of the operator (v0.8.2) and of the Job controller after which nothing more comes of the job.
_REFUSALS = frozenset({"ValidationError", "FailedCreate", "MPIJobFailed"})
_UNSCHEDULABLE = "Unschedulable"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobProblem:
    """Why a job does not get on: what is wrong of which object, and whether waiting can help."""

    target: str
    why: str
    final: bool


def find_problems(pods: Iterable[ApiObject], events: Iterable[ApiObject], job: str) -> Iterator[JobProblem]:
    """Yield what keeps a job from running; `events` are those of its namespace."""
    for each in events:
        target = str(each.get("involvedObject", {}).get("name", ""))
        if each.get("type") == "Warning" and each.get("reason") in _REFUSALS and _belongs(target, job):
            yield JobProblem(target=target, why=f"{each['reason']}: {each.get('message', '')}", final=True)
    for pod in pods:
        yield from find_pod_problems(pod)


def _belongs(name: str, job: str) -> bool:
    return name == job or name.startswith(f"{job}-")


def find_pod_problems(pod: ApiObject) -> Iterator[JobProblem]:
    """Yield what keeps a pod from running, or made it fail."""
    name, status = str(pod["metadata"]["name"]), pod.get("status", {})
    for container in (*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ())):
        waiting = container.get("state", {}).get("waiting") or {}
        if waiting.get("reason") in _NEVER_STARTS:
            why = f"{waiting['reason']}: {waiting.get('message') or container.get('image', '')}"
            yield JobProblem(target=name, why=why, final=True)
    for condition in status.get("conditions", ()):
        if condition.get("type") == "PodScheduled" and condition.get("reason") == _UNSCHEDULABLE:
            yield JobProblem(target=name, why=f"{_UNSCHEDULABLE}: {condition.get('message', '')}", final=False)
    if status.get("phase") == "Succeeded" and not is_launcher(pod):
        yield JobProblem(target=name, why="Succeeded: it ended before the launcher", final=True)
    if status.get("phase") == "Failed":
        yield JobProblem(target=name, why=_why_failed(status), final=not is_launcher(pod))


def _why_failed(status: ApiObject) -> str:
    ended = [each.get("state", {}).get("terminated") or {} for each in status.get("containerStatuses", ())]
    codes = ", ".join(f"{each.get('reason', '')} {each.get('exitCode', '')}".strip() for each in ended if each)
    return f"Failed: {status.get('message') or status.get('reason') or codes}"


def is_launcher(pod: ApiObject) -> bool:
    """Return whether a pod is the one in which mpirun runs."""
    return bool(pod["metadata"].get("labels", {}).get(ROLE_LABEL) == "launcher")


def is_over(pod: ApiObject) -> bool:
    """Return whether a pod's containers have ended for good."""
    return pod.get("status", {}).get("phase") in {"Succeeded", "Failed"}


def has_condition(job: ApiObject, kind: str) -> bool:
    """Return whether the operator says this of a job."""
    conditions = job.get("status", {}).get("conditions", ())
    return any(each.get("type") == kind and each.get("status") == "True" for each in conditions)


def is_finished(job: ApiObject) -> bool:
    """Return whether the operator has seen a job's end."""
    return has_condition(job, "Succeeded") or has_condition(job, "Failed")


def exit_status(pod: ApiObject) -> int:
    """Return how a pod's container ended; 1 where nobody says."""
    statuses = pod.get("status", {}).get("containerStatuses", ())
    return next((int(each["state"]["terminated"]["exitCode"]) for each in statuses if "terminated" in each["state"]), 1)
