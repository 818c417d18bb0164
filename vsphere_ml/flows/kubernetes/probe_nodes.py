"""A pod on each node, that answers questions there and is taken away whatever happens."""

from __future__ import annotations

import secrets
from dataclasses import field, replace
from typing import TYPE_CHECKING

from vsphere_ml.core.errors import GuestError, NotPossible, VsmlError
from vsphere_ml.core.ports.kubernetes import ObjectRef
from vsphere_ml.flows.kubernetes.job_watch import SCHEDULE_S
from vsphere_ml.flows.kubernetes.pods import poll_until, remove_all
from vsphere_ml.kubernetes.bench_job import CLUSTER_LABEL, job_name
from vsphere_ml.kubernetes.cluster.probe_pod import CONTAINER, LIMIT_S, make_probe_pod, parse_answers
from vsphere_ml.kubernetes.job_state import find_pod_problems, is_over
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from vsphere_ml.core.model.guest import CommandAnswer
    from vsphere_ml.core.ports.kubernetes import ApiObject, KubernetesApi
    from vsphere_ml.core.ports.vcenter import Clock
    from vsphere_ml.kubernetes.cluster.probe_pod import NodeQuestions
    from vsphere_ml.kubernetes.export.site_values import SiteValues

    Answers = Mapping[str, CommandAnswer]

VERIFY_LABEL = "vsml/verify"  # of the pods of one run


@dataclass(slots=True, kw_only=True)
class NodeProbe:
    """Pods that answer for their nodes. `left` says what of them could not be removed."""

    api: KubernetesApi
    clock: Clock
    values: SiteValues
    cluster: str
    ended: Callable[[str, Answers | VsmlError], None]  # called for each node
    wait_s: float = 0.0  # for room on the nodes, beyond a minute
    found: dict[str, Answers | VsmlError] = field(default_factory=dict)  # by node
    left: str = ""
    run: str = ""  # what its pods' names begin with

    def __post_init__(self) -> None:
        self.run = self.run or f"{job_name(self.cluster, 'verify')}-{secrets.token_hex(4)}"

    def ask(self, questions: Iterable[NodeQuestions]) -> Mapping[str, Answers | VsmlError]:
        """Return what each node's pod answered, or why it did not. Nothing of it stays, also when interrupted."""
        self._remove_ended()
        pods: dict[str, str] = {}
        try:
            for number, asked in enumerate(questions):
                name = f"{self.run}-{number}"
                pods[name] = asked.node
                self._apply(name, asked)
            waiting = {name: node for name, node in pods.items() if node not in self.found}
            limit_s = LIMIT_S + self.wait_s
            if poll_until(self.clock, lambda passed: self._read(waiting, passed), limit_s) is None:
                for name, node in waiting.items():
                    self._end(node, _describe_stuck(name, f"it has not ended after {limit_s:g} s"))
        finally:
            self.left = self._remove(pods)
        return self.found

    @property
    def _labels(self) -> Mapping[str, str]:
        return {VERIFY_LABEL: self.run}

    def _remove_ended(self) -> None:
        """Take away what a run left that was killed: its pods end by themselves."""
        label = {CLUSTER_LABEL: job_name(self.cluster, "verify")}
        for each in self.api.list("Pod", self.values.job_namespace, label):
            if is_over(each):
                self.api.delete(ObjectRef("Pod", self.values.job_namespace, str(each["metadata"]["name"])))

    def _apply(self, name: str, asked: NodeQuestions) -> None:
        labels = {CLUSTER_LABEL: job_name(self.cluster, "verify"), **self._labels}
        try:
            self.api.apply(make_probe_pod(replace(self.values, name=name), asked, labels))
        except NotPossible as error:  # a quota, or a policy of the namespace
            self._end(asked.node, error)

    def _read(self, waiting: dict[str, str], passed_s: float) -> bool | None:
        """Take up the pods that have ended, and those that never will; return True once none is waited for."""
        listed = self.api.list("Pod", self.values.job_namespace, self._labels)
        pods = {str(each["metadata"]["name"]): each for each in listed}
        for name, node in tuple(waiting.items()):
            outcome = self._judge(name, pods.get(name), passed_s)
            if outcome is not None:
                del waiting[name]
                self._end(node, outcome)
        return None if waiting else True

    def _judge(self, name: str, pod: ApiObject | None, passed_s: float) -> Answers | VsmlError | None:
        if pod is None:
            return _describe_stuck(name, "somebody else removed it")
        if pod.get("status", {}).get("phase") == "Succeeded":
            return parse_answers(self.api.read_log(self.values.job_namespace, name, CONTAINER))
        patient = passed_s <= SCHEDULE_S + self.wait_s
        problems = [each for each in find_pod_problems(pod) if each.final or not patient]
        return _describe_stuck(name, problems[0].why) if problems else None

    def _end(self, node: str, outcome: Answers | VsmlError) -> None:
        self.found[node] = outcome
        self.ended(node, outcome)

    def _remove(self, pods: Iterable[str]) -> str:
        refs = [ObjectRef("Pod", self.values.job_namespace, name) for name in pods]
        return remove_all(self.api, self.clock, refs, self._labels) if refs else ""


def _describe_stuck(pod: str, why: str) -> GuestError:
    return GuestError(
        f"{pod} does not answer: {why}",
        code="kubernetes.pod-stuck",
        target=pod,
        hint="`kubectl describe node` shows what others hold there; the pod was removed",
    )
