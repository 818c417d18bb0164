"""`vsml bench` and `vsml verify` on the lab's Kubernetes, where things go wrong: a clear answer, and nothing left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.integration.api_server import ApiServer, path_of
from tests.integration.guests import in_pods
from tests.peers import clients
from tests.peers.clients import environment
from tests.unit.kubernetes.export.exports import GPUS_ALONE
from tests.waiting import until
from vsphere_ml.core.diagnostics import Severity
from vsphere_ml.kubernetes.bench_job import BenchPods, make_bench_job, make_config_map
from vsphere_ml.kubernetes.export.node_pools import make_pools
from vsphere_ml.kubernetes.export.site_values import SiteValues
from vsphere_ml.kubernetes.image.contract import check_images
from vsphere_ml.kubernetes.image.read_image import read_folders
from vsphere_ml.kubernetes.image.variants import ROOT
from vsphere_ml.lab import build, server
from vsphere_ml.lab.kubernetes import control_plane, images

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vsphere_ml.lab.state import Lab

pytestmark = in_pods
DEADLINE_S = 600
EXAMPLE = Path(__file__).parents[2] / "examples" / "lab" / "cluster.toml"
IMAGE = images.NAMES["openmpi-4"]
IN_PODS = ("--run-in", "kubernetes", "--namespace", "default")
SHORT, LONG = (("--repeats", "1", "--batch", "2", "--steps", steps) for steps in ("4", "400"))
PODS = "/api/v1/namespaces/default/pods"
OURS = (
    PODS,
    "/apis/kubeflow.org/v2beta1/namespaces/default/mpijobs",
    "/api/v1/namespaces/default/configmaps?labelSelector=vsml%2Fcluster",
)
QUOTA = "{apiVersion: v1, kind: ResourceQuota, metadata: {name: few, namespace: default}, spec: {hard: {pods: 0}}}"
# A cluster's own policy that spoils each job: the operator refuses it then, by an event alone.
SPOILING = """\
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: spoiling}
spec:
  failurePolicy: Fail
  reinvocationPolicy: Never
  matchConstraints:
    resourceRules: [{apiGroups: [kubeflow.org], apiVersions: [v2beta1], operations: [CREATE], resources: [mpijobs]}]
  mutations:
    - patchType: JSONPatch
      jsonPatch:
        expression: '[JSONPatch{op: "replace", path: "/spec/runPolicy/cleanPodPolicy", value: "Sometimes"}]'
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: spoiling}
spec: {policyName: spoiling}
"""
# Its connections stay open until the program ends, as those of the command do.
APPLY = """\
import sys, yaml
from vsphere_ml.kubernetes.api.kubeconfig import connect
api = connect()
for each in yaml.safe_load_all(open(sys.argv[1])):
    api.apply(each)
"""
HOLDER = """\
apiVersion: v1
kind: Pod
metadata: {name: holder, namespace: default}
spec:
  containers: [{name: c, image: IMAGE, command: [sleep, infinity], resources: {limits: {nvidia.com/gpu: 1}}}]
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VSML_STATE_DIR", str(tmp_path_factory.mktemp("state")))
        try:
            yield server.start_lab()[0]
        finally:
            server.stop_lab()


@pytest.fixture(scope="module")
def plane(lab: Lab) -> Iterator[control_plane.ControlPlane]:
    with pytest.MonkeyPatch.context() as patch:
        try:
            found = control_plane.start(nodes=2)
            patch.setenv("KUBECONFIG", str(found.kubeconfig))
            yield found
        finally:
            control_plane.stop()


@pytest.fixture(scope="module")
def api(plane: control_plane.ControlPlane) -> ApiServer:
    return ApiServer(plane.kubeconfig)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("cluster") / "cluster.toml"
    file.write_text(EXAMPLE.read_text().replace("node-[01-04]", "node-[01-02]"))
    return file


def items(api: ApiServer, path: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = api.call("GET", path)[1]["items"]
    return found


def left(api: ApiServer) -> list[str]:
    """Return what of vsml's is in the namespace."""
    return [each["metadata"]["name"] for path in OURS for each in items(api, path)]


@contextmanager
def kubectl_applied(text: str) -> Iterator[None]:
    """Have objects of somebody else's for a while."""
    run_kubectl("apply", "-f", "-", data=text)
    try:
        yield
    finally:
        run_kubectl("delete", "--wait", "-f", "-", data=text)


def run_kubectl(*words: str, data: str = "") -> subprocess.CompletedProcess[str]:
    command = [str(clients.kubectl()), *words]
    done = subprocess.run(command, input=data, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
    return done


def start_bench(cluster: Path, record: Path, *words: str, image: str = IMAGE) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "vsphere_ml", "bench", str(cluster), *IN_PODS, "--image", image, *words]
    return subprocess.Popen([*command, "--results", str(record)], text=True, stderr=subprocess.PIPE)


def ended(process: subprocess.Popen[str], record: Path) -> tuple[int, dict[str, Any], str]:
    """Return the exit status, the one record, and what stood on stderr."""
    _, text = process.communicate(timeout=DEADLINE_S)
    (file,) = record.glob("*.json")
    return process.returncode, json.loads(file.read_text()), text


def running(api: ApiServer, role: str) -> list[dict[str, Any]]:
    path = f"{PODS}?labelSelector=training.kubeflow.org%2Fjob-role%3D{role}"
    return [each for each in items(api, path) if each["status"].get("phase") == "Running"]


def test_a_quota_ends_a_benchmark_at_once(api: ApiServer, cluster: Path, tmp_path: Path) -> None:
    with kubectl_applied(QUOTA):
        status, record, text = ended(start_bench(cluster, tmp_path, *SHORT), tmp_path)
    assert (status, record["outcome"]) == (6, "failed"), text
    assert "quota" in record["reason"]
    assert left(api) == []


def test_a_job_that_the_operator_refuses_ends_a_benchmark_at_once(
    api: ApiServer, cluster: Path, tmp_path: Path
) -> None:
    with kubectl_applied(SPOILING):
        until(lambda: _is_spoilt(api), "the policy is not in force", DEADLINE_S)
        status, record, text = ended(start_bench(cluster, tmp_path, *SHORT), tmp_path)
    assert (status, record["outcome"]) == (6, "failed"), text
    assert "ValidationError" in record["reason"]
    assert left(api) == []


def _is_spoilt(api: ApiServer) -> bool:
    """Try it without keeping anything."""
    job = make_job("dry")
    path = f"{path_of(job)}?fieldManager=vsml&force=true&dryRun=All"
    policy = api.call("PATCH", path, job)[1].get("spec", {}).get("runPolicy", {}).get("cleanPodPolicy")
    return bool(policy == "Sometimes")


def make_job(name: str) -> dict[str, Any]:
    values = SiteValues(name=name, namespace="default", image=IMAGE)
    pods = BenchPods(cluster="lab", workers=2, slots=1, command=("mpirun", "true"), programs={"a.py": "pass\n"})
    return make_bench_job(make_pools(GPUS_ALONE, values, None), values, pods)


def test_a_killed_worker_ends_a_benchmark(api: ApiServer, cluster: Path, tmp_path: Path) -> None:
    process = start_bench(cluster, tmp_path, *LONG)
    until(lambda: bool(running(api, "launcher")), "no launcher", DEADLINE_S)
    (_, worker) = running(api, "worker")
    number = int(worker["status"]["containerStatuses"][0]["containerID"].rpartition("/")[2])
    os.kill(number, signal.SIGKILL)
    status, record, text = ended(process, tmp_path)
    assert (status, record["outcome"]) == (6, "failed"), text
    assert left(api) == []


def test_an_api_server_that_restarts_does_not_end_a_benchmark(
    plane: control_plane.ControlPlane, api: ApiServer, cluster: Path, tmp_path: Path
) -> None:
    process = start_bench(cluster, tmp_path, *("--repeats", "1", "--batch", "2", "--steps", "100"))
    until(lambda: bool(running(api, "launcher")), "no launcher", DEADLINE_S)
    before = server_pid(plane)
    os.kill(before, signal.SIGKILL)
    until(lambda: server_pid(plane) not in {0, before}, "it is not started again", DEADLINE_S)
    status, record, text = ended(process, tmp_path)
    assert (status, record["outcome"]) == (0, "complete"), text
    assert {each["verdict"] for each in record["proofs"]} == {"yes"}
    assert left(api) == []


def server_pid(plane: control_plane.ControlPlane) -> int:
    """Return the process of the API server; 0 while there is none."""
    children = Path(f"/proc/{plane.pid}/task").glob("*/children")
    for pid in (word for file in children for word in file.read_text().split()):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        if b"kube-apiserver" in words:
            return int(pid)
    return 0


def verify(cluster: Path, *words: str) -> tuple[int, dict[str, Any]]:
    command = [sys.executable, "-m", "vsphere_ml", "verify", str(cluster), *IN_PODS, "--image", IMAGE, "-o", "json"]
    done = subprocess.run([*command, *words], stdout=subprocess.PIPE, text=True, check=False, timeout=DEADLINE_S)
    return done.returncode, json.loads(done.stdout)


def test_verify_asks_nodes_operator_and_a_pod_of_each(api: ApiServer, cluster: Path) -> None:
    status, answer = verify(cluster)
    facts = {(each["target"], each["fact"]): each for each in answer["data"]["facts"]}
    severities = {name: each["severity"] for name, each in facts.items()}
    name = answer["data"]["cluster"]
    for node in ("node-01", "node-02"):
        for fact in ("node", "allocatable GPUs", "allocatable RDMA", "pod GPUs", "locked memory"):
            assert severities[node, fact] == "ok", facts[node, fact]
        assert severities[node, "licence"] == severities[node, "pod RDMA"] == "unknown"
        assert "no device" in facts[node, "allocatable GPUs"]["message"]
        assert all(each["lab"] for (target, _), each in facts.items() if target == node)
    assert severities[name, "mpi-operator"] == "ok"
    assert severities[name, "GPU Operator"] == severities[name, "Network Operator"] == "unknown"
    assert (status, left(api)) == (0, [])


def test_nodes_are_traced_to_the_vms_that_their_provider_names(
    lab: Lab, plane: control_plane.ControlPlane, cluster: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other.toml"
    other.write_text(cluster.read_text().replace("node-[01-02]", "worker-[01-02]"))
    vsml = [sys.executable, "-m", "vsphere_ml"]
    subprocess.run([*vsml, "provision", str(other), "--yes", "--skip-guests"], check=True, timeout=DEADLINE_S)
    assert {each["severity"] for each in hosts_of(verify(cluster)[1])} == {"unknown"}
    uuids = vm_uuids(lab, "worker-01", "worker-02")
    for node, uuid in zip(("node-01", "node-02"), uuids, strict=True):
        run_kubectl("patch", "node", node, "-p", json.dumps({"spec": {"providerID": f"vsphere://{uuid}"}}))
    answer = verify(cluster)[1]
    assert {each["severity"] for each in hosts_of(answer)} == {"ok"}
    assert {each["message"].split()[2] for each in hosts_of(answer)} == {"worker-01", "worker-02"}
    (apart,) = (each for each in answer["data"]["facts"] if each["fact"] == "inter-host")
    assert apart["severity"] == "ok"
    process = start_bench(cluster, tmp_path / "record", *SHORT)
    _, record, text = ended(process, tmp_path / "record")
    assert len({each["host"] for each in record["placement"]}) == 2, text


def hosts_of(answer: dict[str, Any]) -> list[dict[str, Any]]:
    return [each for each in answer["data"]["facts"] if each["fact"] == "ESXi host"]


def vm_uuids(lab: Lab, *names: str) -> list[str]:
    """Return the BIOS UUIDs of VMs, as govc tells them."""
    command = [str(build.govc()), "vm.info", "-json", *names]
    done = subprocess.run(command, env=environment(lab), capture_output=True, text=True, check=True)
    uuids = {each["name"]: each["config"]["uuid"] for each in json.loads(done.stdout)["virtualMachines"]}
    return [uuids[name] for name in names]


def test_no_pod_of_verify_stays_after_ctrl_c(api: ApiServer, cluster: Path) -> None:
    with kubectl_applied(HOLDER.replace("IMAGE", IMAGE)):
        until(lambda: bool(items(api, f"{PODS}?fieldSelector=status.phase%3DRunning")), "no holder", DEADLINE_S)
        words = ["verify", str(cluster), *IN_PODS, "--image", IMAGE]
        process = subprocess.Popen([sys.executable, "-m", "vsphere_ml", *words])
        until(lambda: len(items(api, f"{PODS}?labelSelector=vsml%2Fverify")) == 2, "no pods", DEADLINE_S)
        process.send_signal(signal.SIGINT)
        assert process.wait(DEADLINE_S) == 130
        assert items(api, f"{PODS}?labelSelector=vsml%2Fverify") == []


def test_a_node_without_room_fails_verify_and_leaves_nothing(api: ApiServer, cluster: Path) -> None:
    with kubectl_applied(HOLDER.replace("IMAGE", IMAGE)):
        status, answer = verify(cluster)
    assert (status, [each["code"] for each in answer["errors"]]) == (5, ["guest.not-verified"])
    assert {each["code"] for each in answer["data"]["unreachable"].values()} == {"kubernetes.pod-stuck"}
    assert len(answer["data"]["unreachable"]) == 1
    assert left(api) == []


def test_what_is_applied_is_what_kubectl_shows_and_applied_again_differs_in_nothing(
    plane: control_plane.ControlPlane, api: ApiServer, tmp_path: Path
) -> None:
    job = make_job("shown")
    values = SiteValues(name="shown", namespace="default", image=IMAGE)
    config = make_config_map(values, BenchPods(cluster="lab", workers=2, slots=1, command=(), programs={"a.py": "1\n"}))
    (tmp_path / "applied.yaml").write_text(yaml.safe_dump_all([config, job]))
    diff = ("diff", "--server-side", "--field-manager", "vsml", "-f", str(tmp_path / "applied.yaml"))
    try:
        for _ in range(2):
            subprocess.run([sys.executable, "-c", APPLY, str(tmp_path / "applied.yaml")], check=True)
            assert run_kubectl(*diff).stdout == ""
        for each in (config, job):
            shown = json.loads(run_kubectl("get", each["kind"], "shown", "-o", "json", "--show-managed-fields").stdout)
            assert missing_in(each, shown) == []
            managers = {(entry["manager"], entry["operation"]) for entry in shown["metadata"]["managedFields"]}
            assert ("vsml", "Apply") in managers
    finally:
        run_kubectl("delete", "--wait", "-f", str(tmp_path / "applied.yaml"))
        until(lambda: not left(api), "pods are left", DEADLINE_S)


def missing_in(wanted: Any, shown: Any, path: str = "") -> list[str]:
    """Return the paths of what is not as it was applied."""
    if isinstance(wanted, dict) and isinstance(shown, dict):
        return [each for key in wanted for each in missing_in(wanted[key], shown.get(key), f"{path}.{key}")]
    if isinstance(wanted, list) and isinstance(shown, list) and len(wanted) == len(shown):
        pairs = enumerate(zip(wanted, shown, strict=True))
        return [each for at, (one, other) in pairs for each in missing_in(one, other, f"{path}[{at}]")]
    return [] if str(wanted) == str(shown) else [path]


@pytest.mark.parametrize("mpi", images.NAMES)
def test_the_lab_s_images_keep_the_contract_of_images(
    plane: control_plane.ControlPlane, mpi: str, tmp_path: Path
) -> None:
    settings = json.loads((plane.kubeconfig.parent / "nodes" / "settings.json").read_text())
    image = settings["images"][images.NAMES[mpi]]
    folders = {Path(layer): "" for layer in reversed(image["layers"])}
    folders |= {Path(source) / mpi: f"{target}/{mpi}" for target, source in image["mounts"].items()}
    found = check_images([read_folders(folders, mpi)], ROOT)
    assert [each for each in found if each.severity is Severity.ERROR] == []
