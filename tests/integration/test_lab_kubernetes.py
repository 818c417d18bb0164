"""What `vsml k8s lint` says of MPIJobs, and what `vsml export kubernetes` writes, held against real Kubernetes.

The control plane and the MPI operator are other people's, unmodified; there are no nodes, so nothing runs.
"""

from __future__ import annotations

import socket
import stat
import subprocess
import time
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.integration.api_server import PLURALS, ApiServer, path_of
from tests.unit.kubernetes.export.exports import GPUS_ALONE, WITH_NICS, exported
from tests.unit.kubernetes.test_lint import BROKEN, JOB, changed
from tests.waiting import until
from vsphere_ml.core.errors import NotPossible
from vsphere_ml.kubernetes import trap_rules
from vsphere_ml.lab import build, toolchain
from vsphere_ml.lab.kubernetes import control_plane

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.lab, pytest.mark.long, pytest.mark.timeout(3600)]
TRAPS = {rule.id for rule in trap_rules.RULES}
REFUSED, EVENT, TAKEN = "by the API server", "by the operator", "taken"
# A job that names another manager the operator leaves alone before it checks it (v0.8.2): no event, no status, no pod.
LEFT_ALONE = "spec.runPolicy.managedBy"
SILENCE_S = 5
CASES = [*enumerate(BROKEN)]
MODULES = [control_plane.KUBERNETES.module, control_plane.NODES.module]


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[control_plane.ControlPlane]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VSML_STATE_DIR", str(tmp_path_factory.mktemp("state")))
        try:
            yield control_plane.start()
        finally:
            control_plane.stop()


@pytest.fixture(scope="module")
def api(plane: control_plane.ControlPlane) -> ApiServer:
    return ApiServer(plane.kubeconfig)


def outcome(api: ApiServer, job: dict[str, Any]) -> str:
    """Return who refuses a job, once somebody has, or that the operator takes it up."""
    status, _ = api.apply(job)
    if status >= 400:
        return REFUSED
    until(lambda: judged(api, job), "neither refused nor taken", 60)
    return str(judged(api, job))


def judged(api: ApiServer, job: dict[str, Any]) -> str | None:
    name = job["metadata"]["name"]
    _, events = api.call("GET", f"/api/v1/namespaces/default/events?fieldSelector=involvedObject.name={name}")
    if any(each["reason"] == "ValidationError" for each in events["items"]):
        return EVENT
    conditions = api.call("GET", path_of(job))[1].get("status", {}).get("conditions", ())
    return TAKEN if any(each["type"] == "Created" for each in conditions) else None


def named(text: str, name: str) -> dict[str, Any]:
    job: dict[str, Any] = yaml.safe_load(text)
    if job["metadata"]["name"] == "train":
        job["metadata"]["name"] = name
    return job


def test_the_control_plane_is_of_its_release_and_its_kubeconfig_is_its_owners(
    plane: control_plane.ControlPlane, api: ApiServer
) -> None:
    assert plane.kubernetes == "v1.36.2"
    assert stat.S_IMODE(plane.kubeconfig.stat().st_mode) == 0o600
    assert api.call("GET", "/version")[1]["gitVersion"] == plane.kubernetes
    assert control_plane.start() == plane


def test_a_second_one_is_refused_since_the_operator_s_port_is_fixed(plane: control_plane.ControlPlane) -> None:
    until(_is_port_taken, "the operator does not listen", 60)
    try:
        with pytest.raises(NotPossible) as raised:
            control_plane.start("second")
    finally:
        control_plane.stop("second")
    assert (raised.value.code, raised.value.target) == ("lab.start-failed", "port 8080")


def _is_port_taken() -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", control_plane.OPERATOR_PORT)) == 0


def test_a_job_in_which_lint_finds_nothing_is_taken(api: ApiServer) -> None:
    assert outcome(api, named(JOB, "right")) == TAKEN


@pytest.mark.parametrize(("number", "case"), CASES)
def test_the_operator_refuses_what_lint_says_is_refused_and_takes_the_traps(
    api: ApiServer, number: int, case: tuple[str, Any, str, str]
) -> None:
    path, value, rule, _ = case
    if path == LEFT_ALONE:
        job = named(changed(path, value), f"broken-{number}")
        assert api.apply(job)[0] in {200, 201}
        time.sleep(SILENCE_S)
        assert judged(api, job) is None
        return
    found = outcome(api, named(changed(path, value), f"broken-{number}"))
    print(f"{rule}: {path}: {found}")  # noqa: T201 - the table, with pytest -rP
    assert (found == TAKEN) == (rule in TRAPS)


@pytest.mark.parametrize("spec", [WITH_NICS, GPUS_ALONE])
def test_what_an_export_writes_is_taken_and_applied_again_changes_nothing(api: ApiServer, spec: Any) -> None:
    documents = [each for file in exported(spec) for each in yaml.safe_load_all(file.text) if each]
    served = sorted(
        (each for each in documents if each.get("kind") in PLURALS), key=lambda each: each["kind"] == "MPIJob"
    )
    assert {"Namespace", "MPIJob"} <= {each["kind"] for each in served}
    first = [api.apply(each) for each in served]
    assert [status for status, _ in first if status not in {200, 201}] == []
    again = [api.apply(each) for each in served]
    assert [written(each) for _, each in again] == [written(each) for _, each in first]


@pytest.mark.parametrize("module", MODULES, ids=lambda at: at.name)
def test_go_vet_finds_nothing_in_the_lab_s_programs(plane: control_plane.ControlPlane, module: Path) -> None:
    """Here, and not beside each change: without what was built for these tests it takes minutes."""
    go = toolchain.find(build.to_stderr, module)
    command = [str(go), "vet", "./..."]
    subprocess.run(command, cwd=module, env=toolchain.environment(go), check=True)


def written(answer: dict[str, Any]) -> tuple[Any, Any]:
    """Return what an apply can change: the generation counts changes of `spec`; status is others' business."""
    return answer["metadata"].get("generation"), answer.get("spec")
