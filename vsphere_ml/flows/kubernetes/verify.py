"""`vsml verify --run-in kubernetes`: what nodes offer, what operators say, what a pod on each node sees."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.core.diagnostics import Severity
from vsphere_ml.core.errors import ConfigError, NotPossible, VsmlError
from vsphere_ml.core.model.guest import GuestFacts
from vsphere_ml.core.ports.kubernetes import ObjectRef
from vsphere_ml.flows.guests.verify import Verification
from vsphere_ml.flows.kubernetes.pods import PAUSE_S
from vsphere_ml.flows.kubernetes.probe_nodes import NodeProbe
from vsphere_ml.flows.site.read_site import read_site
from vsphere_ml.guest.events import Entering, GuestEnded
from vsphere_ml.guest.facts.pod import judge_pod, pod_questions
from vsphere_ml.guest.facts.verify import Evidence
from vsphere_ml.kubernetes.cluster.node_vms import find_vms, judge_hosts, judge_vm
from vsphere_ml.kubernetes.cluster.nodes import GPU, count_allocatable, is_lab, is_worker, judge_node, name_of
from vsphere_ml.kubernetes.cluster.operators import OPERATORS, OperatorObjects, judge_operator
from vsphere_ml.kubernetes.cluster.probe_pod import NodeQuestions
from vsphere_ml.kubernetes.job_state import find_pod_problems
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from vsphere_ml.core.model.guest import CommandAnswer
    from vsphere_ml.core.model.inventory import Inventory, Vm
    from vsphere_ml.core.model.spec import ClusterSpec, NodeSpec
    from vsphere_ml.core.ports.kubernetes import ApiObject, KubernetesApi
    from vsphere_ml.core.ports.vcenter import Clock
    from vsphere_ml.flows.run_context import RunContext
    from vsphere_ml.guest.events import GuestListener
    from vsphere_ml.kubernetes.cluster.findings import ClusterFinding
    from vsphere_ml.kubernetes.cluster.operators import OperatorSpec
    from vsphere_ml.kubernetes.export.site_values import SiteValues

RENEWAL_S = 15  # mpi-operator v0.8.2 holds its Lease for as long
_HINT = (
    "`kubectl describe node` and the operators' logs say more; "
    "`vsml verify -v` has the command that shows each fact again"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodVerification:
    """Which Kubernetes cluster is asked, and by which image; vCenter says on which hosts its nodes run."""

    run: RunContext
    api: KubernetesApi
    values: SiteValues
    notify: GuestListener
    only: Collection[str] = ()  # names of Kubernetes' nodes
    wait_s: float = 0.0
    strict: bool = False


def verify_in_pods(asked: PodVerification) -> Verification:
    """Return what was seen of the cluster's operators, and of each node from outside and from within a pod."""
    spec, nodes = asked.run.spec, _read_nodes(asked)
    site = read_site(asked.run, why="first", devices=False)
    vms = find_vms(nodes, site.vms)
    facts = {name_of(node): _facts_of(spec, node) for node in nodes}
    outside = {name_of(node): (*_judge_node(asked, node, vms, site),) for node in nodes}
    probe = _make_probe(asked)
    answers = _ask_pods(asked, probe, facts)
    evidence = [*_judge_cluster(asked, nodes, vms, site), *_judge_left(spec, probe.left)]
    for name, outcome in answers.items():
        evidence += outside[name]
        if not isinstance(outcome, VsmlError):
            evidence += judge_pod(outcome, facts[name])
    errors = {name: outcome for name, outcome in answers.items() if isinstance(outcome, VsmlError)}
    return Verification(cluster=spec.name, evidence=tuple(evidence), errors=errors, strict=asked.strict, hint=_HINT)


def _make_probe(asked: PodVerification) -> NodeProbe:
    return NodeProbe(
        api=asked.api,
        clock=asked.run.clock,
        values=asked.values,
        cluster=asked.run.spec.name,
        ended=lambda node, outcome: asked.notify(_describe_end(node, outcome)),
        wait_s=asked.wait_s,
    )


def _ask_pods(
    asked: PodVerification, probe: NodeProbe, facts: Mapping[str, GuestFacts]
) -> dict[str, Mapping[str, CommandAnswer] | VsmlError]:
    """Return the answers in the order of the nodes."""
    for name in facts:
        asked.notify(Entering(node=name))
    answers = probe.ask([_make_questions(each) for each in facts.values()])
    return {name: answers[name] for name in facts}


def _read_nodes(asked: PodVerification) -> list[ApiObject]:
    """Return the nodes that pods may run on; ConfigError `usage` where one that is named is none of them."""
    found = {name_of(each): each for each in asked.api.list("Node") if is_worker(each)}
    unknown = sorted({*asked.only} - {*found})
    if unknown or not found:
        raise ConfigError(
            f"{asked.api.server} has no node `{unknown[0]}`" if unknown else f"{asked.api.server} has no nodes",
            code="usage",
            target=unknown[0] if unknown else asked.api.server,
            hint="`kubectl get nodes`",
        )
    return [node for name, node in found.items() if not asked.only or name in asked.only]


def _wanted_node(spec: ClusterSpec, node: ApiObject) -> NodeSpec:
    """Return the file's node of this name, else the first with as many GPUs: a Supervisor gives names of its own."""
    gpus = count_allocatable(node, GPU)
    named = [each for each in spec.nodes if each.name == name_of(node)]
    return next(iter((*named, *(each for each in spec.nodes if each.gpu.count == gpus))), spec.nodes[0])


def _facts_of(spec: ClusterSpec, node: ApiObject) -> GuestFacts:
    wanted = _wanted_node(spec, node)
    return GuestFacts(
        name=name_of(node),
        cluster=spec.name,
        peers=(),
        gpus=wanted.gpu.count,
        profile=wanted.gpu.profile,
        nic=wanted.nic.kind,
        lab=is_lab(node),
    )


def _make_questions(facts: GuestFacts) -> NodeQuestions:
    rdma = facts.nic.spec.function
    return NodeQuestions(node=facts.name, commands=pod_questions(facts), gpus=facts.gpus, rdma=rdma)


def _judge_node(asked: PodVerification, node: ApiObject, vms: Mapping[str, Vm], site: Inventory) -> Iterator[Evidence]:
    wanted, name = _wanted_node(asked.run.spec, node), name_of(node)
    rdma = asked.values.rdma_resource if wanted.nic.is_function else ""
    found = (*judge_node(node, wanted.gpu.count, rdma), judge_vm(name, vms, _name_hosts(vms, site)))
    for each in found:
        yield _as_evidence(name, each, lab=is_lab(node))


def _name_hosts(vms: Mapping[str, Vm], site: Inventory) -> dict[str, str]:
    return {name: site.host(vm.host).name for name, vm in vms.items() if vm.host is not None}


def _judge_cluster(
    asked: PodVerification, nodes: Sequence[ApiObject], vms: Mapping[str, Vm], site: Inventory
) -> Iterator[Evidence]:
    spec, names = asked.run.spec, [name_of(each) for each in nodes]
    hosts = {name: host for name, host in _name_hosts(vms, site).items() if name in names}
    for operator in OPERATORS:
        if operator.required or _is_wanted(spec, operator):
            yield _as_evidence(spec.name, _ask_operator(asked.api, asked.run.clock, operator), lab=False)
    if len(nodes) > 1:
        yield _as_evidence(spec.name, judge_hosts(names, hosts), lab=spec.vcenter.lab is not None)


def _is_wanted(spec: ClusterSpec, operator: OperatorSpec) -> bool:
    """Return whether the file has what an operator is for."""
    if operator.policy == "NicClusterPolicy":
        return any(node.nic.is_function for node in spec.nodes)
    return any(node.gpu.count for node in spec.nodes)


def _ask_operator(api: KubernetesApi, clock: Clock, operator: OperatorSpec) -> ClusterFinding:
    """Return how an operator is; an account that may not read its objects leaves it unknown."""
    try:
        found = _read_operator(api, clock, operator)
    except NotPossible as error:
        return operator.finding(Severity.UNKNOWN, error.message)
    return judge_operator(operator, found)


def _read_operator(api: KubernetesApi, clock: Clock, operator: OperatorSpec) -> OperatorObjects:
    definitions = {str(each["metadata"]["name"]) for each in api.list("CustomResourceDefinition")}
    if operator.definition not in definitions:
        return OperatorObjects(installed=False)
    deployments = tuple(each for each in api.list("Deployment") if operator.deployment in str(each["metadata"]["name"]))
    namespaces = sorted({str(each["metadata"]["namespace"]) for each in deployments})
    pods = [each for namespace in namespaces for each in api.list("Pod", namespace)]
    problems = (
        f"{problem.target}: {problem.why}"
        for pod in pods
        if pod.get("status", {}).get("phase") != "Succeeded"  # validators end so
        for problem in find_pod_problems(pod)
    )
    return OperatorObjects(
        installed=True,
        policies=api.list(operator.policy) if operator.policy else (),
        deployments=deployments,
        problems=tuple(dict.fromkeys(problems)),
        renewed=_is_renewed(api, clock, operator.lease) if operator.lease and not deployments else None,
    )


def _is_renewed(api: KubernetesApi, clock: Clock, lease: str) -> bool:
    """Return whether a Lease is renewed while it is looked at: by no clock but its own."""
    first = _read_renewal(api, lease)
    deadline = clock.now() + RENEWAL_S
    while first and clock.now() < deadline:
        clock.sleep(PAUSE_S)
        if _read_renewal(api, lease) != first:
            return True
    return False


def _read_renewal(api: KubernetesApi, lease: str) -> str:
    found = api.read(ObjectRef("Lease", lease, lease))
    return str((found or {}).get("spec", {}).get("renewTime") or "")


def _judge_left(spec: ClusterSpec, left: str) -> Iterator[Evidence]:
    if left:
        yield Evidence(
            target=spec.name,
            fact="pods of vsml",
            severity=Severity.ERROR,
            message=left,
            command="kubectl get pods --all-namespaces -l vsml/verify",
        )


def _as_evidence(target: str, found: ClusterFinding, *, lab: bool) -> Evidence:
    return Evidence(
        target=target,
        fact=found.fact,
        severity=found.severity,
        message=f"lab: {found.message}" if lab else found.message,
        command=found.command,
        lab=lab,
    )


def _describe_end(node: str, outcome: Mapping[str, CommandAnswer] | VsmlError) -> GuestEnded:
    if isinstance(outcome, VsmlError):
        return GuestEnded(node=node, error=outcome)
    return GuestEnded(node=node, summary=f"its pod answered {len(outcome)} questions")
