"""The MPIJob of a launch: what it adds to the exported one, and that it ends whatever becomes of vsml."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.kubernetes.export.exports import GPUS_ALONE
from vsphere_ml.core.errors import ConfigError
from vsphere_ml.kubernetes.bench_job import (
    CLUSTER_LABEL,
    FILES,
    GRACE_S,
    MOST_BYTES,
    PROGRAMS,
    RECORD,
    USER_JOB,
    BenchPods,
    job_name,
    make_bench_job,
    make_config_map,
)
from vsphere_ml.kubernetes.export.node_pools import make_pools
from vsphere_ml.kubernetes.export.site_values import SiteValues
from vsphere_ml.kubernetes.image.variants import AS_USER, UID, USER_PORT

VALUES = SiteValues(name="train-1", namespace="ml", image="registry.example.com/train:1")
PODS = BenchPods(
    cluster="train",
    workers=2,
    slots=1,
    command=("python3", "by_mpijob.py"),
    variables={"NCCL_DEBUG": "INFO"},
    programs={"rank.py": "pass\n"},
    limit_s=100.0,
)


def test_a_job_has_its_programs_and_ends_by_itself() -> None:
    job = make_bench_job(make_pools(GPUS_ALONE, VALUES, None), VALUES, PODS)
    policy = job["spec"]["runPolicy"]
    assert (policy["cleanPodPolicy"], policy["activeDeadlineSeconds"]) == ("Running", 100 + GRACE_S)
    assert job["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] == 2
    launcher = job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]
    (container,) = launcher["containers"]
    assert container["command"] == ["python3", "by_mpijob.py"]
    assert {"name": "NCCL_DEBUG", "value": "INFO"} in container["env"]
    assert container["volumeMounts"][0]["mountPath"] == PROGRAMS
    assert launcher["volumes"][0]["configMap"]["name"] == "train-1"


def test_pods_of_a_user_have_the_sshd_of_its_image() -> None:
    pods = replace(PODS, sshd=AS_USER)
    spec = make_bench_job(make_pools(GPUS_ALONE, VALUES, None), VALUES, pods)["spec"]
    replicas = {role: each["template"]["spec"] for role, each in spec["mpiReplicaSpecs"].items()}
    assert spec["sshAuthMountPath"] == "/home/mpiuser/.ssh"
    assert {each["securityContext"]["runAsUser"] for each in replicas.values()} == {UID}
    (worker,) = replicas["Worker"]["containers"]
    assert worker["command"] == ["/usr/sbin/sshd", "-De", "-f", "/home/mpiuser/.sshd_config"]
    assert worker["readinessProbe"]["tcpSocket"]["port"] == USER_PORT


def test_a_job_of_the_users_has_its_record_its_files_and_no_deadline() -> None:
    pods = replace(PODS, purpose=USER_JOB, record="{}", archive=b"packed", limit_s=0.0)
    job = make_bench_job(make_pools(GPUS_ALONE, VALUES, None), VALUES, pods)
    assert job["metadata"]["annotations"] == {RECORD: "{}"}
    assert job["metadata"]["labels"][CLUSTER_LABEL] == "train-job"
    assert "activeDeadlineSeconds" not in job["spec"]["runPolicy"]
    assert make_config_map(VALUES, pods)["binaryData"] == {FILES: "cGFja2Vk"}


def test_files_that_no_config_map_holds_are_refused() -> None:
    with pytest.raises(ConfigError) as refused:
        make_config_map(VALUES, replace(PODS, archive=b"x" * MOST_BYTES))
    assert refused.value.code == "kubernetes.files-too-large"


def test_what_ranks_run_goes_with_its_job() -> None:
    owner = {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": {"name": "train-1", "uid": "u"}}
    made = make_config_map(VALUES, PODS, owner)
    assert made["metadata"]["ownerReferences"] == [
        {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "name": "train-1", "uid": "u"}
    ]
    assert made["data"] == {"rank.py": "pass\n"}
    assert "ownerReferences" not in make_config_map(VALUES, PODS)["metadata"]


@pytest.mark.parametrize(
    ("cluster", "name"),
    [("train", "train-0a1b"), ("Train_1.x", "train-1-x-0a1b"), ("7up", "vsml-7up-0a1b"), ("_", "vsml-0a1b")],
)
def test_names_are_those_that_pods_can_have(cluster: str, name: str) -> None:
    assert job_name(cluster, "0a1b") == name
    assert len(job_name("x" * 100, "0a1b")) <= 40
