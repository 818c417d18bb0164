"""The words a run that is not finished ends with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from vsphere_ml.core.errors import VSphereError
from vsphere_ml.core.plan.changes import PowerOn
from vsphere_ml.core.plan.outcome import Failed
from vsphere_ml.core.plan.plan import Plan, Stage
from vsphere_ml.flows.cluster.report import Report

if TYPE_CHECKING:
    from tests.golden import Golden

ON = PowerOn(vm="node-2")
PLAN = Plan(stages=(Stage(title="power on", changes=(ON,)),))


@pytest.mark.parametrize(
    ("action", "message"),
    [
        ("powering on `node-2`", "powering on `node-2` failed: busy"),
        ("", "the lock was lost"),
    ],
)
def test_a_failure_is_told_with_what_failed_and_only_once(action: str, message: str, golden: Golden) -> None:
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
    golden(report.error.details)
