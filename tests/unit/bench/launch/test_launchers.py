"""Launch lines as values, and the `ssh` they find first, run by a real shell."""

from __future__ import annotations

import os
import shlex
import subprocess
from argparse import Namespace
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.unit.bench.jobs import HYDRA, OPEN_MPI_4, OPEN_MPI_5, job
from vsphere_ml.bench.launch.launchers import LAUNCHERS, check_variables, find_launcher, launch
from vsphere_ml.bench.model.job import USER_MARK, RunIn
from vsphere_ml.bench.model.launcher_names import LauncherName
from vsphere_ml.bench.workloads import by_ssh, rank
from vsphere_ml.core.errors import ConfigError, NotPossible

if TYPE_CHECKING:
    from pathlib import Path

    from tests.golden import Golden
    from vsphere_ml.bench.model.job import Runtime


def test_mpich_goes_by_ucx_over_rdma_when_it_is_to_and_over_tcp_otherwise() -> None:
    made = job(launcher="mpirun", backend="mpi", runtime=HYDRA)
    assert launch(made).variables["UCX_TLS"] == "tcp,self"
    over_rdma = replace(made, variables={"UCX_TLS": "rc,sm,self", "UCX_NET_DEVICES": "vmw_pvrdma0:1"}, over_ucx=True)
    started = launch(over_rdma)
    assert (started.variables["UCX_TLS"], started.variables["UCX_NET_DEVICES"]) == ("rc,sm,self", "vmw_pvrdma0:1")
    assert "UCX_NET_DEVICES" in started.command[started.command.index("-genvlist") + 1]


def test_horovodrun_is_given_the_interface_and_every_node_by_its_address() -> None:
    words = launch(job(slots=2)).command
    assert words[:4] == ("/opt/vsml/runtime/bin/python", "-m", "horovod.runner.launch", "--gloo")
    assert words[words.index("--network-interface") + 1] == "eth0"
    assert words[words.index("-H") + 1] == "10.0.0.11:2,10.0.0.12:2"
    assert words[words.index("-np") + 1] == "4"


def test_each_rank_tells_its_place_before_it_becomes_the_program() -> None:
    words = launch(job()).command
    at = words.index("/var/tmp/vsml-bench/train-0a1b/rank.py")
    assert words[at:] == (
        *("/var/tmp/vsml-bench/train-0a1b/rank.py", "--folder", "/var/tmp/vsml-bench/train-0a1b"),
        *("--interface", "eth0", "--", "/opt/vsml/runtime/bin/python", "/var/tmp/vsml-bench/train-0a1b/train.py"),
    )


def test_nothing_of_the_operators_environment_is_among_the_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter2")
    for runtime, launcher, backend in ((None, "horovodrun", "gloo"), (OPEN_MPI_5, "mpirun", "mpi")):
        made = launch(job(launcher=launcher, backend=backend, runtime=runtime))
        assert "AWS_SECRET_ACCESS_KEY" not in made.variables
        assert made.variables["VSML_BENCH_RUN"] == "train-0a1b"


def test_a_path_of_ones_own_stands_behind_the_ssh_that_checks_host_keys() -> None:
    asked = replace(job(), variables={"PATH": "/mine/bin"})
    assert launch(asked).variables["PATH"] == "/var/tmp/vsml-bench/train-0a1b/bin:/mine/bin"


@pytest.mark.parametrize("runtime", [OPEN_MPI_4, OPEN_MPI_5])
def test_both_open_mpi_families_are_told_the_nodes_and_the_interface(runtime: Runtime) -> None:
    made = launch(job(launcher="mpirun", backend="mpi", runtime=runtime, slots=2))
    assert made.command[made.command.index("--hostfile") + 1] == "/var/tmp/vsml-bench/train-0a1b/hostfile"
    assert made.files["hostfile"] == "10.0.0.11 slots=2\n10.0.0.12 slots=2\n"
    assert made.command[made.command.index("btl_tcp_if_include") + 1] == "eth0"
    agent = "/var/tmp/vsml-bench/train-0a1b/bin/ssh"
    assert made.variables["OMPI_MCA_plm_rsh_agent"] == made.variables["PRTE_MCA_plm_ssh_agent"] == agent
    assert made.variables["OMPI_MCA_oob_tcp_if_include"] == made.variables["PRTE_MCA_prte_if_include"] == "eth0"


def test_horovodrun_is_not_given_what_it_gives_to_open_mpi_itself() -> None:
    words = launch(job(backend="mpi", runtime=OPEN_MPI_4)).command
    assert "--mpi-args=--prefix /opt/openmpi" in words


def test_hydra_is_told_the_nodes_the_interface_and_which_variables_ranks_get() -> None:
    made = launch(job(launcher="mpirun", backend="mpi", runtime=HYDRA, slots=2))
    folder = "/var/tmp/vsml-bench/train-0a1b"
    variables = (
        "HOME,LANG,LD_LIBRARY_PATH,LOGNAME,PATH,TF_CPP_MIN_LOG_LEVEL,UCX_NET_DEVICES,UCX_TLS,USER,VSML_BENCH_RUN"
    )
    assert made.command[: made.command.index(f"{folder}/rank.py") - 1] == (
        *("/opt/mpich/bin/mpirun", "-launcher", "ssh", "-launcher-exec", f"{folder}/bin/ssh", "-disable-x"),
        *("-f", f"{folder}/hosts", "-iface", "eth0", "-bind-to", "none", "-np", "4", "-genvlist", variables),
    )
    assert made.files["hosts"] == "10.0.0.11:2\n10.0.0.12:2\n"
    assert (made.variables["UCX_TLS"], made.variables["UCX_NET_DEVICES"]) == ("tcp,self", "eth0")
    assert not any(name.startswith(("OMPI_", "PRTE_")) for name in made.variables)


def test_hydra_in_pods_reads_the_operators_host_file_and_hands_on_what_the_image_sets() -> None:
    runtime = replace(HYDRA, within=RunIn.KUBERNETES, mpirun="mpirun")
    words = launch(job(launcher="mpirun", backend="mpi", runtime=runtime)).command
    assert words[:7] == ("mpirun", "-f", "/etc/mpi/hostfile", "-iface", "eth0", "-bind-to", "none")
    names = words[words.index("-genvlist") + 1].split(",")
    assert {"PATH", "LD_LIBRARY_PATH", "UCX_TLS", "UCX_NET_DEVICES", "VSML_BENCH_RUN"} <= set(names)


def test_horovodrun_does_not_start_mpich(golden: Golden) -> None:
    with pytest.raises(NotPossible) as refused:
        launch(job(backend="mpi", runtime=HYDRA))
    assert (refused.value.code, refused.value.target) == ("bench.horovodrun-mpi", "/opt/mpich/bin/mpirun")
    golden(refused.value)
    assert refused.value.code == "bench.horovodrun-mpi"


def test_horovodrun_does_not_start_open_mpi_5(golden: Golden) -> None:
    with pytest.raises(NotPossible) as refused:
        launch(job(backend="mpi", runtime=OPEN_MPI_5))
    assert (refused.value.code, refused.value.target) == ("bench.horovodrun-mpi", "/opt/openmpi/bin/mpirun")
    golden(refused.value)
    assert refused.value.code == "bench.horovodrun-mpi"


def test_mpi_that_is_not_there_is_named() -> None:
    with pytest.raises(NotPossible) as refused:
        launch(job(launcher="mpirun", backend="mpi"))
    assert (refused.value.code, refused.value.target) == ("bench.no-mpi", "node-1")
    assert "--backend gloo" in refused.value.hint


def test_a_job_without_mpi_is_sent_to_no_option_that_jobs_do_not_have() -> None:
    with pytest.raises(NotPossible) as refused:
        launch(replace(job(launcher="mpirun", backend="mpi"), mark=USER_MARK))
    assert refused.value.code == "bench.no-mpi"
    assert "--backend" not in refused.value.hint


@pytest.mark.parametrize(
    ("given", "options", "command"),
    [
        # As horovodrun 0.28.1 calls it: options before and after the host, the command as one word.
        (
            "-o PasswordAuthentication=no -o StrictHostKeyChecking=no 10.0.0.12 -p 22 'cd / ; env A=b python x.py'",
            "-o PasswordAuthentication=no -o StrictHostKeyChecking=no -p 22",
            "cd / ; env A=b python x.py",
        ),
        # As Open MPI 4.1 calls it: the command as many words, for the remote shell to read.
        ("-x 10.0.0.12 orted -mca pmix '\"^s1,cray\"'", "-x", 'orted -mca pmix "^s1,cray"'),
    ],
)
def test_the_ssh_that_launchers_find_checks_host_keys_first_and_marks_what_it_starts(
    tmp_path: Path, given: str, options: str, command: str
) -> None:
    real = tmp_path / "real-ssh"
    real.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    ours = tmp_path / "ssh"
    ours.write_text(launch(job()).files["bin/ssh"].replace("/usr/bin/ssh", str(real)))
    for each in (real, ours):
        each.chmod(0o755)
    completed = subprocess.run(
        [ours, *shlex.split(given)], capture_output=True, text=True, check=True, env=dict(os.environ)
    )
    words = completed.stdout.splitlines()
    first = next(word for word in words if word.startswith("StrictHostKeyChecking"))
    assert first == "StrictHostKeyChecking=yes"
    assert words[-2:] == ["10.0.0.12", f"export VSML_BENCH_RUN=train-0a1b; {command}"]
    assert " ".join(words[:-2]).endswith(options)


def test_an_elastic_job_asks_for_its_nodes_and_needs_no_more_than_the_least() -> None:
    made = launch(replace(job(slots=2), least_nodes=1))
    words = made.command
    assert (words[words.index("--min-np") + 1], words[words.index("--max-np") + 1]) == ("2", "4")
    assert words[words.index("--host-discovery-script") + 1] == "/var/tmp/vsml-bench/train-0a1b/nodes.sh"
    assert "-H" not in words
    text = subprocess.run(["sh"], input=made.files["nodes.sh"], capture_output=True, text=True, check=True).stdout
    assert text == "10.0.0.11:2\n10.0.0.12:2\n"


def test_ranks_over_gloo_wait_for_a_busy_guest_but_an_elastic_job_no_longer_than_horovod_does() -> None:
    assert launch(job()).variables["HOROVOD_GLOO_TIMEOUT_SECONDS"] == "180"
    assert "HOROVOD_GLOO_TIMEOUT_SECONDS" not in launch(replace(job(), least_nodes=1)).variables
    asked = replace(job(), variables={"HOROVOD_GLOO_TIMEOUT_SECONDS": "600"})
    assert launch(asked).variables["HOROVOD_GLOO_TIMEOUT_SECONDS"] == "600"


@pytest.mark.parametrize("launcher", ["horovodrun", "mpirun"])
def test_ranks_in_a_container_without_an_sshd_are_started_through_the_guests_by_docker_exec(
    tmp_path: Path, launcher: str
) -> None:
    program(tmp_path / "real-ssh", 'for word; do :; done; exec sh -c "$word"')
    program(tmp_path / "docker", 'echo "$1 $2 $3"; shift 3; exec "$@"')
    runtime = replace(OPEN_MPI_4, within=RunIn.CONTAINER)
    made = launch(job(launcher=launcher, backend="mpi", runtime=runtime))
    program(tmp_path / "ssh", made.files["bin/ssh"].replace("/usr/bin/ssh", str(tmp_path / "real-ssh")))
    remote = "printf '%s|' \"$VSML_BENCH_RUN\" 'it'\\''s' \"\\$HOME\""
    path = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    call = [str(tmp_path / "ssh"), "-x", "10.0.0.12", remote]
    completed = subprocess.run(call, check=False, env=path, capture_output=True, text=True)
    assert completed.stdout == "exec -i vsml-worker\ntrain-0a1b|it's|$HOME|", completed.stderr


def program(at: Path, text: str) -> None:
    at.write_text(text if text.startswith("#!") else f"#!/bin/sh\n{text}\n")
    at.chmod(0o755)


def test_the_launcher_of_an_mpijob_goes_by_the_operator_s_hosts_and_the_image_s_own_variables() -> None:
    in_pods = replace(OPEN_MPI_4, mpirun="mpirun", within=RunIn.KUBERNETES)
    made = launch(job(launcher="mpirun", backend="mpi", runtime=in_pods))
    words = made.command
    assert words[:5] == ("mpirun", "-np", "2", "--hostfile", "/etc/mpi/hostfile")
    assert [words[at + 1] for at, word in enumerate(words) if word == "-x"][:1] == ["LD_LIBRARY_PATH"]
    assert "PATH" not in made.variables
    assert "OMPI_MCA_plm_rsh_agent" not in made.variables
    assert made.variables["PRTE_ALLOW_RUN_AS_ROOT"] == "1"


def test_what_an_mpijob_does_not_start_is_refused_before_anything_runs() -> None:
    in_pods = replace(OPEN_MPI_4, within=RunIn.KUBERNETES)
    with pytest.raises(NotPossible) as raised:
        launch(job(runtime=in_pods))
    assert raised.value.code == "bench.no-launcher"


@pytest.mark.parametrize("launcher", sorted({each.name for each in LAUNCHERS}))
@pytest.mark.parametrize("names", [rank.RANK, rank.SIZE, rank.LOCAL_RANK], ids=["rank", "size", "local rank"])
def test_no_variable_of_the_users_hides_a_rank_from_vsml(launcher: str, names: tuple[str, ...]) -> None:
    """What `rank.py` finds first is what the launcher sets: whatever it looks for before that is refused."""
    own = [name for each in LAUNCHERS if each.name == launcher for name in names if name in each.sets]
    for name in names[: names.index(own[-1]) + 1]:
        with pytest.raises(ConfigError) as refused:
            check_variables(launcher, [name])
        assert refused.value.code == "bench.launcher-variable"


def test_what_our_ssh_gives_each_rank_is_what_its_row_says() -> None:
    given = Namespace(ranks_per_node=1, program=["true"])
    (_, words), *_ = by_ssh.ranks(["10.0.0.11"], 29500, given)
    names = {word.partition("=")[0] for word in words if "=" in word}
    assert names == set(find_launcher(LauncherName.SSH).sets)
