"""An MPIJob that is right has no finding; each rule finds the job that breaks it, and names the place."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from vsphere_ml.core.diagnostics import Diagnostic, Severity
from vsphere_ml.core.errors import ConfigError
from vsphere_ml.kubernetes import manifest
from vsphere_ml.kubernetes.lint import KINDS, lint_error, lint_file

JOB = (Path(__file__).parent / "job.yaml").read_text()
REPLICAS = "spec.mpiReplicaSpecs"
MPI = f"{REPLICAS}.Launcher.template.spec.containers[0]"
WORKER = f"{REPLICAS}.Worker.template.spec.containers[0]"
GONE = object()


def findings(text: str) -> list[Diagnostic]:
    return list(lint_file(text, "job.yaml").diagnostics)


def changed(path: str, value: Any, text: str = JOB) -> str:
    """Return the job with the value at a path set, or removed."""
    job = yaml.safe_load(text)
    *above, last = path.replace("[0]", ".0").split(".")
    place = job
    for part in above:
        place = place[0] if part == "0" else place.setdefault(part, {})
    if value is GONE:
        del place[last]
    else:
        place[last] = deepcopy(value)
    return yaml.safe_dump(job)


def test_a_job_that_is_right_has_no_finding() -> None:
    assert findings(JOB) == []


BROKEN = [
    # The eleven that the schema or the operator was tried with, then the traps.
    ("spec.mpiImplementation", "MVAPICH", "mpijob-refused-word", "spec.mpiImplementation"),
    ("spec.slotPerWorker", 1, "mpijob-unknown-field", "spec.slotPerWorker"),
    (
        f"{WORKER}.resources.limits",
        {"nvidia.com/gpu": "one"},
        "gpu-quantity",
        f"{WORKER}.resources.limits.nvidia.com/gpu",
    ),
    ("spec.runPolicy.cleanPodPolicy", "Sometimes", "mpijob-refused-word", "spec.runPolicy.cleanPodPolicy"),
    (f"{REPLICAS}.Launcher.replicas", 2, "mpijob-launcher", f"{REPLICAS}.Launcher.replicas"),
    (f"{REPLICAS}.Worker.restartPolicy", "ExitCode", "mpijob-refused-word", f"{REPLICAS}.Worker.restartPolicy"),
    (f"{REPLICAS}.Launcher", GONE, "mpijob-launcher", REPLICAS),
    ("spec.slotsPerWorker", -1, "mpijob-negative", "spec.slotsPerWorker"),
    ("metadata.name", "n" * 60, "mpijob-pod-name", "metadata.name"),
    ("spec.launcherCreationPolicy", "Later", "launcher-creation-policy", "spec.launcherCreationPolicy"),
    (f"{REPLICAS}.worker", {"replicas": 2}, "mpijob-unknown-role", f"{REPLICAS}.worker"),
    ("apiVersion", "kubeflow.org/v1", "mpijob-api-version", "apiVersion"),
    ("spec.runPolicy.managedBy", "me", "mpijob-refused-word", "spec.runPolicy.managedBy"),
    (f"{REPLICAS}.Worker.replicas", GONE, "mpijob-worker-replicas", f"{REPLICAS}.Worker.replicas"),
    (f"{REPLICAS}.Worker", GONE, "mpijob-no-worker", REPLICAS),
    (
        f"{REPLICAS}.Worker.template.spec.containers",
        [],
        "mpijob-containers",
        f"{REPLICAS}.Worker.template.spec.containers",
    ),
    (f"{MPI}.command", ["mpirun", "-np", "4", "python", "train.py"], "mpi-ranks-and-slots", f"{MPI}.command"),
    (f"{MPI}.command", ["sh", "-c", "exec mpirun -np 3 --hostfile /h x"], "mpi-ranks-and-slots", f"{MPI}.command"),
    ("spec.runLauncherAsWorker", True, "mpi-ranks-and-slots", f"{MPI}.command"),
    (f"{WORKER}.resources.limits", {"nvidia.com/gpu": 4}, "gpus-and-slots", "spec.slotsPerWorker"),
    (f"{MPI}.resources", {"limits": {"nvidia.com/gpu": 1}}, "launcher-gpus", f"{MPI}.resources"),
    ("spec.runPolicy.cleanPodPolicy", GONE, "clean-pod-policy", "spec.runPolicy.cleanPodPolicy"),
    ("spec.launcherCreationPolicy", "WaitForWorkersReady", "readiness-of-sshd", WORKER),
    (f"{WORKER}.securityContext", {}, "rdma-locked-memory", WORKER),
    (f"{MPI}.command", ["mpirun", "-np", "2", "python", "train.py"], "open-mpi-5", f"{MPI}.env"),
]


@pytest.mark.parametrize(("path", "value", "rule", "place"), BROKEN)
def test_what_breaks_a_rule_is_found_in_its_place(path: str, value: Any, rule: str, place: str) -> None:
    assert (rule, place) in [(each.code, each.target) for each in findings(changed(path, value))]


def test_every_rule_is_broken_by_one_of_them() -> None:
    assert {each.id for each in KINDS["MPIJob"].rules} == {rule for *_, rule, _ in BROKEN} | {"yaml-repeated-key"}


@pytest.mark.parametrize(
    "command",
    [
        ["mpirun", "-np", "2", "-H", "a,b", "train"],
        ["sh", "-c", "export PRTE_MCA_prte_default_hostfile=/etc/mpi/hostfile\nmpirun -np 2 train"],
        ["sleep", "infinity"],
    ],
)
def test_open_mpi_5_is_no_trap_where_hosts_are_named(command: list[str]) -> None:
    assert "open-mpi-5" not in {each.code for each in findings(changed(f"{MPI}.command", command))}


def test_a_key_that_stands_twice_is_an_error_with_its_line() -> None:
    (found,) = findings(JOB.replace("  slotsPerWorker: 1\n", "  slotsPerWorker: 2\n  slotsPerWorker: 1\n"))
    assert (found.code, found.severity, found.target) == ("yaml-repeated-key", Severity.ERROR, "spec.slotsPerWorker")
    assert found.line == JOB.splitlines().index("  slotsPerWorker: 1") + 2


def test_each_of_several_documents_is_checked_and_other_kinds_are_named() -> None:
    broken = changed("spec.mpiImplementation", "MVAPICH")
    linted = lint_file(f"{JOB}\n---\n{broken}\n---\nkind: Secret\n---\n", "all.yaml")
    assert (linted.jobs, linted.skipped, [each.code for each in linted.diagnostics]) == (
        2,
        ("Secret",),
        ["mpijob-refused-word"],
    )
    assert (linted.diagnostics[0].line or 0) > len(JOB.splitlines())


def test_warnings_alone_are_no_error() -> None:
    linted = lint_file(changed("spec.runPolicy.cleanPodPolicy", GONE), "job.yaml")
    assert [each.severity for each in linted.diagnostics] == [Severity.WARNING]
    assert lint_error((linted,)) is None


@pytest.mark.parametrize(
    ("text", "code"),
    [("kind: Pod", "kubernetes.no-job"), ("", "kubernetes.no-job"), ("kind: MPIJob", "kubernetes.job-invalid")],
)
def test_a_file_without_a_job_that_can_run_is_an_error(text: str, code: str) -> None:
    error = lint_error((lint_file(text, "job.yaml"),))
    assert error is not None
    assert (error.code, error.status) == (code, 2)


BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{above}'] * 10)}]\n" for above, name in zip("abcdefg", "bcdefgh", strict=True)
)


@pytest.mark.parametrize(
    "text",
    ["a:\n\t- b", "a: [", "{" * 50_000, "[" * 3_000 + "]" * 3_000, "a: &a {b: *a}", BOMB, "\x00", "a: b: c", "--- *x"],
)
def test_what_is_no_yaml_or_too_much_of_it_is_refused(text: str) -> None:
    with pytest.raises(ConfigError) as raised:
        lint_file(text, "job.yaml")
    assert (raised.value.code, raised.value.target) == ("config.invalid", "job.yaml")


@pytest.mark.parametrize("value", ["2026-99-99", "!!python/name:os.system x", "9" * 5_000, "0x", "!!int x"])
def test_values_of_no_known_type_are_read_as_text(value: str) -> None:
    (read,) = manifest.read_manifests(f"kind: MPIJob\na: {value}\n", "job.yaml")
    assert isinstance(read.get("a"), str | int)


@pytest.mark.parametrize(
    "spec",
    [
        "3",
        "[1]",
        "text",
        "{mpiReplicaSpecs: [1], runPolicy: 3}",
        "{mpiReplicaSpecs: {Launcher: 1, Worker: {template: {spec: {containers: 3}}}}}",
    ],
)
def test_a_job_of_other_types_is_invalid_and_no_bug(spec: str) -> None:
    error = lint_error((lint_file(f"kind: MPIJob\nmetadata: 3\nspec: {spec}\n", "job.yaml"),))
    assert error is not None
    assert error.code == "kubernetes.job-invalid"
