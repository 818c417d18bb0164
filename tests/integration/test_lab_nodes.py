"""Pods of the lab's Kubernetes: an MPIJob of the real operator runs across two nodes, with real sshd and mpirun."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.integration.api_server import ApiServer, path_of
from tests.integration.guests import in_pods
from tests.waiting import until
from vsphere_ml.bench.porting.rewrite.port_script import port
from vsphere_ml.kubernetes.bench_job import BenchPods, make_bench_job
from vsphere_ml.kubernetes.export.mpi_job import HOST_FILE
from vsphere_ml.kubernetes.export.node_pools import make_pools
from vsphere_ml.kubernetes.export.site_values import SiteValues
from vsphere_ml.kubernetes.job_state import JOB_LABEL, find_problems, is_launcher, is_over
from vsphere_ml.lab import mpich, runtime, server
from vsphere_ml.lab.kubernetes import control_plane, images

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vsphere_ml.core.ports.kubernetes import ApiObject

pytestmark = in_pods
PODS = "/api/v1/namespaces/default/pods"
DEADLINE_S = 600
EXAMPLE = Path(__file__).parents[2] / "examples" / "lab" / "cluster.toml"
VSML = ("-m", "vsphere_ml")
PRODUCTS = Path(__file__).parents[2] / "examples" / "stanford-online-products"
# Each worker makes the synthetic set for itself.
TRAINING = (
    "python3 make_small.py --out /tmp/small --train 192 --test 48 && "
    "python3 preprocess.py --data /tmp/small --out /tmp/shards --shards 2 && "
    "exec python3 train_hvd.py --data /tmp/shards --epochs 1"
)
BENCH = ("--run-in", "kubernetes", "--namespace", "default", "--repeats", "1", "--steps", "4", "--batch", "2")
# The job as it would be without what vsml adds to it for Open MPI 5.
BY_THE_OPERATOR_ALONE = """\
from vsphere_ml.__main__ import main
from vsphere_ml.flows.kubernetes import submit
made = submit.make_bench_job
def make(*given):
    job = made(*given)
    (container,) = job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"]
    at = container["command"].index("--hostfile")
    del container["command"][at : at + 2]
    container["env"] = [each for each in container["env"] if not each["name"].startswith("PRTE_MCA_")]
    return job
submit.make_bench_job = make
main()
"""
WHO = "echo here: $(hostname) $(cat /proc/sys/kernel/random/boot_id) $(nvidia-smi -L | wc -l)"


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[control_plane.ControlPlane]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VSML_STATE_DIR", str(tmp_path_factory.mktemp("state")))
        try:
            server.start_lab()
            yield control_plane.start(nodes=2)
        finally:
            control_plane.stop()
            server.stop_lab()


@pytest.fixture(scope="module")
def api(plane: control_plane.ControlPlane) -> ApiServer:
    return ApiServer(plane.kubeconfig)


def mpi_job(name: str, image: str, words: tuple[str, ...]) -> dict[str, Any]:
    from tests.unit.kubernetes.export.exports import GPUS_ALONE  # noqa: PLC0415 - its file is read here

    values = SiteValues(name=name, namespace="default", image=image)
    pods = BenchPods(cluster="lab", workers=2, slots=1, command=words)
    job = make_bench_job(make_pools(GPUS_ALONE, values, None), values, pods)
    for each in job["spec"]["mpiReplicaSpecs"].values():
        (container,) = each["template"]["spec"]["containers"]
        if "resources" in container:
            container["resources"]["limits"] = {"nvidia.com/gpu": 1}
        else:
            container.pop("volumeMounts")  # no programs of ours
    job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"].pop("volumes")
    return job


def pods_of(api: ApiServer, name: str) -> list[ApiObject]:
    found: list[ApiObject] = api.call("GET", f"{PODS}?labelSelector={JOB_LABEL}%3D{name}")[1]["items"]
    return found


def run(api: ApiServer, job: dict[str, Any]) -> tuple[str, list[str]]:
    """Return the launcher's log once it has ended, and its lines of `WHO`."""
    name = job["metadata"]["name"]
    assert api.apply(job)[0] in {200, 201}

    def over() -> list[ApiObject]:
        return [each for each in pods_of(api, name) if is_launcher(each) and is_over(each)]

    until(lambda: bool(over()), "the launcher has not ended", DEADLINE_S)
    log = api.text(f"{PODS}/{over()[0]['metadata']['name']}/log")
    api.call("DELETE", path_of(job))
    until(lambda: not pods_of(api, name), "pods are left", DEADLINE_S)
    return log, [line.partition("here: ")[2] for line in log.splitlines() if "here: " in line]


def mpirun(*options: str) -> tuple[str, ...]:
    return ("mpirun", "--allow-run-as-root", "-np", "2", *options, "sh", "-c", WHO)


@pytest.mark.parametrize("image", [images.NAMES[mpi] for mpi in runtime.OPEN_MPI])
def test_ranks_run_in_a_pod_of_each_node_and_each_sees_its_gpu(api: ApiServer, image: str) -> None:
    log, lines = run(api, mpi_job("placed", image, mpirun("--hostfile", HOST_FILE)))
    assert len(lines) == 2, log
    assert {line.split()[0] for line in lines} == {"placed-worker-0", "placed-worker-1"}
    assert len({line.split()[1] for line in lines}) == 2
    assert {line.split()[2] for line in lines} == {"1"}


def test_open_mpi_5_runs_all_ranks_in_the_launcher_by_the_operator_s_variables_alone(api: ApiServer) -> None:
    job = mpi_job("trapped", images.NAMES["openmpi-5"], mpirun())
    job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]["env"] = []
    log, lines = run(api, job)
    assert len(lines) == 2, log
    assert all(line.startswith("trapped-launcher") for line in lines), log


def test_an_image_that_nobody_has_is_told_as_a_kubelet_tells_it(api: ApiServer) -> None:
    job = mpi_job("pulled", "example.com/none:1", mpirun())
    assert api.apply(job)[0] in {200, 201}

    def problems() -> list[str]:
        return [each.why for each in find_problems(pods_of(api, "pulled"), (), "pulled") if each.final]

    until(lambda: bool(problems()), "nobody tells of the image", DEADLINE_S)
    assert any("ErrImagePull" in why or "ImagePullBackOff" in why for why in problems())
    api.call("DELETE", path_of(job))
    until(lambda: not pods_of(api, "pulled"), "pods are left", DEADLINE_S)


def test_a_quota_refuses_pods_and_the_job_s_events_say_so(api: ApiServer) -> None:
    quota = yaml.safe_load(
        "{apiVersion: v1, kind: ResourceQuota, metadata: {name: few, namespace: default}, spec: {hard: {pods: 0}}}"
    )
    assert api.apply(quota)[0] in {200, 201}
    job = mpi_job("refused", images.NAMES["openmpi-4"], mpirun())
    assert api.apply(job)[0] in {200, 201}

    def problems() -> list[str]:
        events = api.call("GET", "/api/v1/namespaces/default/events")[1]["items"]
        return [each.why for each in find_problems((), events, "refused")]

    until(lambda: bool(problems()), "no event tells of the quota", DEADLINE_S)
    assert any("quota" in why for why in problems())
    api.call("DELETE", path_of(job))
    api.call("DELETE", path_of(quota))


def test_nodes_say_what_has_no_device(api: ApiServer) -> None:
    nodes = api.call("GET", "/api/v1/nodes")[1]["items"]
    assert [each["metadata"]["name"] for each in nodes] == ["node-01", "node-02"]
    for each in nodes:
        assert each["status"]["allocatable"]["nvidia.com/gpu"] == "1"
        assert "nvidia.com/gpu" in each["metadata"]["annotations"]["lab.vsml/stand-ins"]
        assert each["status"]["nodeInfo"]["bootID"]


def bench(
    plane: control_plane.ControlPlane, folder: Path, image: str, *more: str, program: tuple[str, str] = VSML
) -> tuple[int, dict[str, Any]]:
    """Return the command's exit status, and the one record that it left."""
    write_cluster(folder)
    command = [sys.executable, *program, "bench", str(folder / "cluster.toml"), *BENCH, "--image", image, *more]
    env = os.environ | {"KUBECONFIG": str(plane.kubeconfig)}
    done = subprocess.run([*command, "--results", str(folder / "record")], env=env, check=False)
    (record,) = (folder / "record").glob("*.json")
    return done.returncode, json.loads(record.read_text())


@pytest.mark.parametrize(("mpi", "version"), [("openmpi-4", "4.1.8"), ("openmpi-5", "5.0.11"), (mpich.FOLDER, "5.0.2")])
def test_a_benchmark_in_pods_is_proven_and_leaves_nothing(
    plane: control_plane.ControlPlane, api: ApiServer, tmp_path: Path, mpi: str, version: str
) -> None:
    whose = ("--mpi", "mpich") if mpi == mpich.FOLDER else ()
    status, record = bench(plane, tmp_path, images.NAMES[mpi], *whose)
    assert (status, record["outcome"]) == (0, "complete")
    assert {each["name"]: each["verdict"] for each in record["proofs"]} == dict.fromkeys(
        ("placement", "in_sync", "path"), "yes"
    )
    assert {each["node"] for each in record["placement"]} == {"node-01", "node-02"}
    assert record["environment"]["versions"]["mpich" if whose else "open_mpi"] == version
    assert api.call("GET", PODS)[1]["items"] == []


def job(plane: control_plane.ControlPlane, folder: Path, verb: str, *words: str) -> Any:
    """Return what a command of `vsml job` says of jobs in pods."""
    place = ("--run-in", "kubernetes", "--namespace", "default", "-o", "json")
    command = [sys.executable, *VSML, "job", verb, "--file", str(folder / "cluster.toml"), *place, *words]
    env = os.environ | {"KUBECONFIG": str(plane.kubeconfig)}
    done = subprocess.run(command, env=env, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)["data"]


def write_cluster(folder: Path) -> None:
    (folder / "cluster.toml").write_text(EXAMPLE.read_text().replace("node-[01-04]", "node-[01-02]"))


def test_a_ported_training_runs_as_a_job_on_two_nodes_and_what_it_made_is_fetched(
    plane: control_plane.ControlPlane, api: ApiServer, tmp_path: Path
) -> None:
    write_cluster(tmp_path)
    shutil.copytree(PRODUCTS, tmp_path / "mine")
    ported = port((PRODUCTS / "train.py").read_bytes(), "train.py").after.decode()
    (tmp_path / "mine" / "train_hvd.py").write_text(ported)
    run = ("--image", images.NAMES["openmpi-5"], "--folder", str(tmp_path / "mine"), "--", TRAINING)
    ended = job(plane, tmp_path, "run", *run)
    assert (ended["state"], ended["status"]) == ("ended", 0)
    verdicts = {each["name"]: each["verdict"] for each in ended["proofs"]}
    assert (verdicts["placement"], verdicts["path"]) == ("yes", "yes")
    files = job(plane, tmp_path, "fetch", "--into", str(tmp_path / "fetched"))["files"]
    assert {"job.log", "work/mobilenet.weights.h5"} <= set(files["worker-0"])
    log = (tmp_path / "fetched" / "worker-0" / "job.log").read_text()
    hashes = {line.partition('"weights": ')[2] for line in log.splitlines() if '"weights"' in line}
    assert len(hashes) == 1
    job(plane, tmp_path, "stop", "--delete", ended["run_id"])
    assert job(plane, tmp_path, "list")["jobs"] == []
    assert api.call("GET", PODS)[1]["items"] == []


def test_a_job_in_pods_that_is_stopped_holds_no_pod(
    plane: control_plane.ControlPlane, api: ApiServer, tmp_path: Path
) -> None:
    write_cluster(tmp_path)
    run = ("--image", images.NAMES["openmpi-5"], "--detach", "--", "sleep 900")
    run_id = job(plane, tmp_path, "run", *run)["run_id"]
    until(lambda: len(pods_of(api, run_id)) == 3, "the job has no launcher", DEADLINE_S)
    job(plane, tmp_path, "stop", run_id)
    assert pods_of(api, run_id) == []
    assert {each["run_id"]: each["state"] for each in job(plane, tmp_path, "list")["jobs"]}[run_id] == "stopped"
    job(plane, tmp_path, "stop", run_id, "--delete")
    assert run_id not in {each["run_id"] for each in job(plane, tmp_path, "list")["jobs"]}


def test_pods_of_a_user_are_measured_by_the_sshd_of_their_image(
    plane: control_plane.ControlPlane, api: ApiServer, tmp_path: Path
) -> None:
    status, record = bench(plane, tmp_path, images.NON_ROOT, "--non-root")
    assert (status, record["outcome"]) == (0, "complete")
    assert {each["name"]: each["verdict"] for each in record["proofs"]}["placement"] == "yes"
    assert api.call("GET", PODS)[1]["items"] == []


def test_placement_proves_that_open_mpi_5_ran_no_rank_on_a_worker_by_the_operator_s_variables_alone(
    plane: control_plane.ControlPlane, api: ApiServer, tmp_path: Path
) -> None:
    status, record = bench(plane, tmp_path, images.NAMES["openmpi-5"], program=("-c", BY_THE_OPERATOR_ALONE))
    assert {each["name"]: each["verdict"] for each in record["proofs"]}["placement"] == "no"
    assert [each["node"].rpartition("-")[0] for each in record["placement"]] == [f"{record['run_id']}-launcher"] * 2
    assert status == 8
    assert api.call("GET", PODS)[1]["items"] == []


def test_a_benchmark_of_an_image_that_nobody_has_fails_at_once_and_leaves_nothing(
    plane: control_plane.ControlPlane, api: ApiServer, tmp_path: Path
) -> None:
    status, record = bench(plane, tmp_path, "example.com/none:1")
    assert (status, record["outcome"]) == (6, "failed")
    assert "ErrImagePull" in record["reason"]
    assert api.call("GET", PODS)[1]["items"] == []
