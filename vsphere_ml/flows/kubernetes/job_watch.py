"""One MPIJob from its apply to its end: watched by its pods and events, and taken away whatever becomes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.core.errors import BenchError
from vsphere_ml.core.ports.kubernetes import ObjectRef
from vsphere_ml.flows.kubernetes.pods import poll_until, remove_all
from vsphere_ml.kubernetes.job_state import JOB_LABEL, find_problems, is_launcher, is_over
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from vsphere_ml.core.ports.kubernetes import ApiObject, KubernetesApi
    from vsphere_ml.core.ports.vcenter import Clock
    from vsphere_ml.kubernetes.job_state import JobProblem

SCHEDULE_S = 60.0  # for pods that no node has room for: another job may just be ending


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPods:
    """How a job's pods ended: the launcher's own object, the workers' by name, and the launcher's log."""

    launcher: ApiObject
    workers: tuple[ApiObject, ...]
    log: str


@dataclass(slots=True, kw_only=True)
class JobWatch:
    """An MPIJob that was applied."""

    api: KubernetesApi
    clock: Clock
    namespace: str
    name: str
    limit_s: float  # for all of it
    workers: tuple[ApiObject, ...] = ()  # as they were last seen: the operator deletes them at the job's end

    def until_end(self) -> JobPods:
        """Return the pods once the launcher has ended.

        BenchError `kubernetes.job-stuck` as soon as something is seen that no waiting helps, with what was said of it;
        `bench.timeout` when it outlives its limit.
        """
        ended = poll_until(self.clock, self._read_pods, self.limit_s)
        if ended is None:
            raise self._overdue()
        return ended

    def _read_pods(self, elapsed_s: float) -> JobPods | None:
        """Return the pods when the launcher has ended; raise what no waiting helps."""
        pods = self.api.list("Pod", self.namespace, {JOB_LABEL: self.name})
        self._remember([each for each in pods if not is_launcher(each)])
        launchers = [each for each in pods if is_launcher(each)]
        if over := [each for each in launchers if is_over(each)]:
            return JobPods(launcher=over[-1], workers=self.workers, log=read_log(self.api, over[-1]))
        self._check_problems(pods, elapsed_s)
        return None

    def _remember(self, workers: Sequence[ApiObject]) -> None:
        """Keep what is known of workers that have an address."""
        known = {each["metadata"]["name"]: each for each in self.workers}
        known |= {each["metadata"]["name"]: each for each in workers if each.get("status", {}).get("podIP")}
        self.workers = tuple(sorted(known.values(), key=_index_of_worker))

    def _check_problems(self, pods: Sequence[ApiObject], elapsed_s: float) -> None:
        events = self.api.list("Event", self.namespace)
        check_problems(find_problems(pods, events, self.name), elapsed_s, "the job was removed")

    def _overdue(self) -> BenchError:
        return BenchError(
            f"{self.name}: the job has not ended after {self.limit_s:g} s",
            code="bench.timeout",
            target=self.name,
            hint="a higher --max-time",
        )

    def remove(self, *more: ObjectRef) -> str:
        """Take the job away, and wait until no pod of it is left; return why some are, if so."""
        refs = (ObjectRef("MPIJob", self.namespace, self.name), *more)
        return remove_all(self.api, self.clock, refs, {JOB_LABEL: self.name})


def check_problems(found: Iterable[JobProblem], elapsed_s: float, hint: str) -> None:
    """Raise BenchError `kubernetes.job-stuck` for what no waiting helps, or has not helped for a minute."""
    stuck = [each for each in found if each.final or elapsed_s > SCHEDULE_S]
    if stuck:
        raise BenchError(
            f"{stuck[0].target} does not run: {stuck[0].why}",
            code="kubernetes.job-stuck",
            target=stuck[0].target,
            hint=f"kubectl get events in the job's namespace; {hint}",
            details=tuple(dict.fromkeys(f"{each.target}: {each.why}" for each in stuck[1:])),
        )


def read_log(api: KubernetesApi, pod: ApiObject) -> str:
    """Return what a pod's first container has printed so far."""
    metadata, container = pod["metadata"], pod["spec"]["containers"][0]["name"]
    return api.read_log(metadata["namespace"], metadata["name"], container)


def _index_of_worker(pod: ApiObject) -> int:
    """Return a worker's number, by which the operator names it and orders its host file."""
    return int(str(pod["metadata"]["name"]).rpartition("-")[2])
