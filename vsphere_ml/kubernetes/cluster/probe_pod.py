"""A pod that answers questions on one node and ends: its manifest, and its answers out of its log."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from vsphere_ml.core.model.guest import CommandAnswer
from vsphere_ml.kubernetes.cluster.nodes import GPU
from vsphere_ml.kubernetes.export.mpi_job import NO_SIDECAR
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vsphere_ml.kubernetes.export.site_values import SiteValues

CONTAINER = "verify"
LIMIT_S = 1800  # of a pod: its image is gigabytes, and may have to be pulled first
_ASK, _END, _OUT, _ERR = "?", "=", "|", "!"
# Each answer's lines, after a letter for what they are: what was asked, output, errors, exit status.
_QUESTION = """\
( {command}
) >"$at.out" 2>"$at.err"; status=$?
echo '{ask} '{name}; sed 's/^/{out} /' "$at.out"; sed 's/^/{err} /' "$at.err"; echo; echo "{end} $status"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeQuestions:
    """What a pod on a node is to answer, and what it is given for that."""

    node: str
    commands: Mapping[str, str]
    gpus: int
    rdma: bool


def make_probe_pod(values: SiteValues, asked: NodeQuestions, labels: Mapping[str, str]) -> dict[str, Any]:
    """Return a pod for a node, put there by the scheduler, so that what others hold is respected.

    It asks for GPUs, and with `rdma` for an RDMA device, as a worker does. If vsml is killed, it ends by itself.
    """
    limits: dict[str, Any] = {GPU: asked.gpus} if asked.gpus else {}
    if asked.rdma:
        limits[values.rdma_resource] = 1
    networks = {"k8s.v1.cni.cncf.io/networks": values.rdma_network} if asked.rdma and values.rdma_network else {}
    container = {
        "name": CONTAINER,
        "image": values.image,
        "command": ["sh", "-c", make_script(asked.commands)],
        **({"resources": {"limits": limits}} if limits else {}),
        **({"securityContext": {"capabilities": {"add": ["IPC_LOCK"]}}} if asked.rdma else {}),
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": values.name,
            "namespace": values.job_namespace,
            "labels": {"app.kubernetes.io/managed-by": "vsml", **labels},
            "annotations": {**NO_SIDECAR, **networks},
        },
        "spec": {
            "restartPolicy": "Never",
            "activeDeadlineSeconds": LIMIT_S,
            "terminationGracePeriodSeconds": 5,
            "automountServiceAccountToken": False,
            "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": _select_node(asked.node)}},
            "containers": [container],
        },
    }


def _select_node(node: str) -> dict[str, Any]:
    """Return the term by which a DaemonSet's pods go to their nodes, too."""
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    return {"nodeSelectorTerms": [{"matchFields": [field]}]}


def make_script(questions: Mapping[str, str]) -> str:
    """Return a script for any POSIX shell that answers each question and always ends well."""
    marks = {"ask": _ASK, "end": _END, "out": _OUT, "err": _ERR}
    asked = (_QUESTION.format(name=shlex.quote(name), command=command, **marks) for name, command in questions.items())
    return "".join(("at=/tmp/vsml-verify.$$\n", *asked, 'rm -f "$at.out" "$at.err"\n'))


def parse_answers(log: str) -> dict[str, CommandAnswer]:
    """Return the answers in a pod's log by what was asked; one that was cut is left out."""
    found: dict[str, CommandAnswer] = {}
    name, lines = "", {_OUT: list[str](), _ERR: list[str]()}
    for line in log.splitlines():
        mark, _, text = line.partition(" ")
        if mark == _ASK:
            name, lines = text, {_OUT: [], _ERR: []}
        elif mark in lines:
            lines[mark].append(text)
        elif mark == _END and name and text.isdecimal():
            found[name] = CommandAnswer(int(text), "\n".join(lines[_OUT]), "\n".join(lines[_ERR]))
    return found
