"""The words a run that is not finished ends with."""

from __future__ import annotations

import pytest

from vsphere_ml.core.errors import VSphereError
from vsphere_ml.core.plan.changes import PowerOn
from vsphere_ml.core.plan.outcome import Failed
from vsphere_ml.core.plan.plan import Plan, Stage
from vsphere_ml.flows.cluster.report import Report

ON = PowerOn(vm="node-2")
PLAN = Plan(stages=(Stage(title="power on", changes=(ON,)),))


@pytest.mark.parametrize(
    ("action", "message", "shown"),
    [
        ("powering on `node-2`", "powering on `node-2` failed: busy", "node-2: powering on `node-2` failed: busy"),
        ("", "the lock was lost", "node-2: power-on of node-2 failed: the lock was lost"),
    ],
)
def test_a_failure_is_told_with_what_failed_and_only_once(action: str, message: str, shown: str) -> None:
    error = VSphereError(message, code="vsphere.task-failed")
    error.action = action
    failed = Failed(change=ON, error=error)
    report = Report(
        command="provision",
        cluster="train",
        file="cluster.toml",
        plan=PLAN,
        applied=True,
        pending=PLAN,
        outcomes=(failed,),
    )
    assert report.error is not None
    assert report.error.details == (shown,)
