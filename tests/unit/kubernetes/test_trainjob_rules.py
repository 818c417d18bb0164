"""A TrainJob that is right has no finding; each rule finds the job that breaks it, and names the place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.kubernetes.test_lint import GONE, changed
from vsphere_ml.kubernetes.lint import KINDS, lint_error, lint_file

JOB = (Path(__file__).parent / "trainjob.yaml").read_text()
TRAINER = "spec.trainer"
GPU = f"{TRAINER}.resourcesPerNode.limits"


def found(text: str) -> list[tuple[str, str]]:
    return [(each.code, each.target) for each in lint_file(text, "job.yaml").diagnostics]


def test_a_job_that_is_right_has_no_finding() -> None:
    linted = lint_file(JOB, "job.yaml")
    assert (linted.jobs, linted.skipped, linted.diagnostics) == (1, (), ())
    assert lint_error((linted,)) is None


BROKEN = [
    ("apiVersion", "kubeflow.org/v2alpha1", "trainjob-api-version", "apiVersion"),
    ("spec.podTemplateOverrides", [], "trainjob-unknown-field", "spec.podTemplateOverrides"),
    (f"{TRAINER}.numNode", 2, "trainjob-unknown-field", f"{TRAINER}.numNode"),
    ("spec.managedBy", "me", "trainjob-refused-word", "spec.managedBy"),
    ("spec.runtimeRef.kind", "Runtime", "trainjob-refused-word", "spec.runtimeRef.kind"),
    (f"{TRAINER}.numProcPerNode", "auto", "trainjob-number", f"{TRAINER}.numProcPerNode"),
    (f"{TRAINER}.numNodes", 0, "trainjob-number", f"{TRAINER}.numNodes"),
    ("spec.activeDeadlineSeconds", 0, "trainjob-number", "spec.activeDeadlineSeconds"),
    ("spec.runtimeRef", GONE, "trainjob-runtime", "spec.runtimeRef"),
    ("spec.runtimeRef.name", "", "trainjob-runtime", "spec.runtimeRef"),
    ("metadata.name", "2-nodes", "trainjob-name", "metadata.name"),
    (f"{TRAINER}.env", [{"name": "PET_NNODES", "value": "2"}], "trainjob-reserved-variable", f"{TRAINER}.env[0]"),
    (GPU, {"nvidia.com/gpu": "one"}, "gpu-quantity", f"{GPU}.nvidia.com/gpu"),
    (f"{TRAINER}.command", ["mpirun", "-np", "4", "train"], "trainjob-ranks", f"{TRAINER}.command"),
    (GPU, {"nvidia.com/gpu": 2}, "trainjob-gpus-and-processes", f"{TRAINER}.numProcPerNode"),
]


@pytest.mark.parametrize(("path", "value", "rule", "place"), BROKEN)
def test_what_breaks_a_rule_is_found_in_its_place(path: str, value: Any, rule: str, place: str) -> None:
    assert found(changed(path, value, JOB)) == [(rule, place)]


def test_every_rule_is_broken_by_one_of_them() -> None:
    assert {each.id for each in KINDS["TrainJob"].rules} == {rule for *_, rule, _ in BROKEN} | {"yaml-repeated-key"}


def test_ranks_that_are_all_of_the_nodes_are_right() -> None:
    assert found(changed(f"{TRAINER}.command", ["mpirun", "-np", "8", "train"], JOB)) == []


@pytest.mark.parametrize("value", [None, 7, [], "text", {"a": [None]}])
def test_odd_values_anywhere_are_findings_and_never_a_bug(value: Any) -> None:
    for path in ("spec", "metadata", "spec.trainer", f"{TRAINER}.env", GPU, f"{TRAINER}.command", "spec.runtimeRef"):
        lint_file(changed(path, value, JOB), "job.yaml")
