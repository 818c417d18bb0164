"""A job's pods followed to their end, by an API server that answers, refuses, or is silent for a while."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from tests.fakes.clock import FakeClock
from vsphere_ml.core.errors import BenchError, NotPossible
from vsphere_ml.core.ports.kubernetes import ObjectRef
from vsphere_ml.flows.kubernetes.job_watch import JobWatch
from vsphere_ml.flows.kubernetes.pods import GONE_S, SILENCE_S

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vsphere_ml.core.ports.kubernetes import ApiObject


def pod(name: str, role: str, **status: Any) -> dict[str, Any]:
    labels = {"training.kubeflow.org/job-role": role, "training.kubeflow.org/job-name": "train"}
    spec = {"containers": [{"name": "mpi"}], "nodeName": "node-01"}
    return {"metadata": {"name": name, "namespace": "ml", "labels": labels}, "spec": spec, "status": status}


WORKERS = tuple(pod(f"train-worker-{at}", "worker", podIP=f"10.0.0.{at}") for at in (1, 0, 10))
RUNNING, ENDED = (pod("train-launcher-x", "launcher", phase=phase) for phase in ("Running", "Succeeded"))


@dataclass
class SiteOfPods:
    """An API server in memory: each look at pods takes the next answer, the last one for ever."""

    looks: list[tuple[ApiObject, ...] | None]  # None: no answer
    events: tuple[ApiObject, ...] = ()
    deleted: list[ObjectRef] = field(default_factory=list)
    server: str = "https://api"

    def list(self, kind: str, namespace: str = "", labels: Mapping[str, str] | None = None) -> tuple[ApiObject, ...]:
        if kind == "Event":
            return self.events
        answer = self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]
        if answer is None:
            raise NotPossible("silence", code="kubernetes.unreachable")
        return answer

    def apply(self, manifest: ApiObject) -> ApiObject:
        return manifest

    def read(self, ref: ObjectRef) -> ApiObject | None:
        return None

    def delete(self, ref: ObjectRef) -> bool:
        self.deleted.append(ref)
        return True

    def read_log(self, namespace: str, pod: str, container: str) -> str:
        return f"log of {pod}"


def watch(api: SiteOfPods, limit_s: float = 1000.0) -> JobWatch:
    return JobWatch(api=api, clock=FakeClock(), namespace="ml", name="train", limit_s=limit_s)


def test_workers_are_remembered_in_the_order_of_their_numbers_when_the_operator_has_deleted_them() -> None:
    ended = watch(SiteOfPods([(*WORKERS, RUNNING), (ENDED,)])).until_end()
    assert [each["metadata"]["name"] for each in ended.workers] == [
        *("train-worker-0", "train-worker-1", "train-worker-10")
    ]
    assert ended.log == "log of train-launcher-x"


def test_an_api_server_may_be_silent_for_a_while_and_not_for_ever() -> None:
    assert watch(SiteOfPods([(RUNNING,), None, None, (ENDED,)])).until_end().launcher == ENDED
    silent = watch(SiteOfPods([(RUNNING,), None]))
    with pytest.raises(NotPossible):
        silent.until_end()
    assert silent.clock.now() >= SILENCE_S


def test_a_job_that_the_operator_refuses_is_given_up_at_once() -> None:
    refusal = {"type": "Warning", "reason": "ValidationError", "involvedObject": {"name": "train"}}
    refused = watch(SiteOfPods([()], (refusal,)))
    began = refused.clock.now()
    with pytest.raises(BenchError) as raised:
        refused.until_end()
    assert (raised.value.code, refused.clock.now()) == ("kubernetes.job-stuck", began)


def test_a_job_that_outlives_its_limit_is_given_up() -> None:
    with pytest.raises(BenchError) as raised:
        watch(SiteOfPods([(RUNNING,)]), limit_s=5.0).until_end()
    assert raised.value.code == "bench.timeout"


def test_a_job_is_removed_with_all_its_pods_or_those_that_are_left_are_named() -> None:
    api = SiteOfPods([WORKERS, None, ()])
    assert watch(api).remove(ObjectRef("ConfigMap", "ml", "train")) == ""
    assert {each.kind for each in api.deleted} == {"MPIJob", "ConfigMap"}
    stays = watch(SiteOfPods([WORKERS[:1]]))
    assert "train-worker-1" in stays.remove()
    assert stays.clock.now() >= GONE_S
