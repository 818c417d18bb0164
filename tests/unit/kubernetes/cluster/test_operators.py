"""What operators' own objects say: ready, not ready, nothing."""

from __future__ import annotations

import pytest

from tests.unit.kubernetes.cluster.objects import deployment, policy
from vsphere_ml.core.diagnostics import Severity
from vsphere_ml.kubernetes.cluster.operators import OPERATORS, OperatorObjects, judge_operator

MPI, GPU, NETWORK = OPERATORS
OK, ERROR, UNKNOWN = Severity.OK, Severity.ERROR, Severity.UNKNOWN
THERE = OperatorObjects(installed=True)


@pytest.mark.parametrize(
    ("operator", "found", "severity"),
    [
        (MPI, OperatorObjects(installed=False), ERROR),
        (GPU, OperatorObjects(installed=False), UNKNOWN),
        (MPI, OperatorObjects(installed=True, deployments=(deployment("mpi-operator"),)), OK),
        (MPI, OperatorObjects(installed=True, deployments=(deployment("mpi-operator", available="False"),)), ERROR),
        (MPI, OperatorObjects(installed=True, renewed=True), OK),
        (MPI, OperatorObjects(installed=True, renewed=False), UNKNOWN),
        (GPU, OperatorObjects(installed=True, policies=(policy("ready"),), deployments=(deployment("g"),)), OK),
        (GPU, OperatorObjects(installed=True, policies=(policy("ready"),)), OK),
        (GPU, THERE, UNKNOWN),
        (NETWORK, OperatorObjects(installed=True, policies=(policy("notReady"),)), ERROR),
        (NETWORK, OperatorObjects(installed=True, policies=(policy(None),)), ERROR),
        (GPU, OperatorObjects(installed=True, policies=(policy("ready"),), problems=("pod: ErrImagePull",)), ERROR),
    ],
)
def test_an_operator_is_as_its_objects_say(operator: object, found: OperatorObjects, severity: Severity) -> None:
    assert judge_operator(operator, found).severity is severity  # type: ignore[arg-type]


def test_the_pod_that_keeps_an_operator_from_being_ready_is_named() -> None:
    late = OperatorObjects(installed=True, policies=(policy("notReady"),), problems=("nvidia-driver-x: ErrImagePull",))
    assert "nvidia-driver-x" in judge_operator(GPU, late).message
