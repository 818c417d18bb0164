"""The command line of `vsml job`: where the cluster file ends and the command begins, and what is refused."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from typer.main import get_command

from tests.fakes.requirements import cluster
from tests.unit.cli.views.jobs.screens import RECORD, job
from vsphere_ml.bench.model.job import RunIn
from vsphere_ml.bench.model.transports import Transport
from vsphere_ml.bench.model.user_job import JobState
from vsphere_ml.cli.bench.run_options import read_variables
from vsphere_ml.cli.jobs import list_jobs, logs, run
from vsphere_ml.cli.jobs.app import app
from vsphere_ml.cli.jobs.options import OpenNodes, PlaceOptions, name_options
from vsphere_ml.cli.wiring.site_wiring import SystemClock
from vsphere_ml.core.errors import GuestError, NotPossible
from vsphere_ml.core.ports.vcenter import GuestPlace
from vsphere_ml.flows.jobs.find import JobList, JobPlaces

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from vsphere_ml.flows.jobs.start import JobRequest


@pytest.mark.parametrize(
    ("line", "file", "words"),
    [
        ("-- python train.py", "cluster.toml", ["python", "train.py"]),
        ("other.toml -- ./run.sh mine.toml", "other.toml", ["./run.sh", "mine.toml"]),
        ("--launcher torchrun other.toml --detach -- train.py", "other.toml", ["train.py"]),
        ("-f other.toml -- train.py", "other.toml", ["train.py"]),
        ("--file other.toml --detach -- train.py -f x", "other.toml", ["train.py", "-f", "x"]),
        ("train.py", "cluster.toml", ["train.py"]),
    ],
)
def test_the_file_stands_before_the_command(line: str, file: str, words: list[str]) -> None:
    command: Any = get_command(app)
    context = command.commands["run"].make_context("run", line.split())
    assert (context.params["file"], context.params["words"]) == (Path(file), words)


@pytest.mark.parametrize(
    "line", ["job run", "job run cluster.toml --", "job run --launcher slurm -- x", "job run --ranks-per-node 0 -- x"]
)
def test_what_cannot_be_meant_is_a_usage_error(vsml: Callable[..., Any], line: str) -> None:
    assert vsml(*line.split()).status == 2


def test_a_run_without_a_command_is_hinted_at_with_file_and_place(vsml: Callable[..., Any]) -> None:
    line = "job run -f other.toml --run-in container"
    assert f"{line} --folder" in vsml(*line.split()).err


@pytest.mark.parametrize("variable", ["NAME", "1=x", "VSML_JOB_RUN=train-1", "VSML_BENCH_RUN=x", "VSML_BENCH_FILE=x"])
def test_a_variable_that_is_none_is_refused(
    vsml: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = vsml("job", "run", "--env", variable, "--", "true")
    assert (ended.status, f"--env {variable}" in ended.err) == (2, True)


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ("", "RANK WORLD_SIZE LOCAL_RANK MASTER_ADDR MASTER_PORT"),
        ("--launcher torchrun", "RANK WORLD_SIZE LOCAL_WORLD_SIZE MASTER_ADDR TORCHELASTIC_RUN_ID"),
        ("--launcher horovodrun", "HOROVOD_RANK HOROVOD_CONTROLLER NCCL_SOCKET_IFNAME"),
        ("--launcher mpirun", "OMPI_COMM_WORLD_NODE_RANK OMPI_UNIVERSE_SIZE PMIX_RANK PMI_RANK PMI_FD MPI_LOCALNRANKS"),
        ("--run-in kubernetes", "OMPI_UNIVERSE_SIZE PMI_SIZE"),
        ("--launcher torchrun", "OMPI_COMM_WORLD_RANK PMI_SIZE HOROVOD_LOCAL_RANK"),  # `rank.py` reads them first
    ],
)
def test_what_the_launcher_sets_itself_is_refused_all_at_once_before_anything_is_read(
    vsml: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: str, names: str
) -> None:
    monkeypatch.chdir(tmp_path)
    given = [word for name in names.split() for word in ("--env", f"{name}=1")]
    ended = vsml("job", "run", "-o", "json", *options.split(), "--env", "COLOUR=blue", *given, "--", "true")
    (error,) = json.loads(ended.out)["errors"]
    assert (ended.status, error["code"]) == (2, "bench.launcher-variable")
    assert ", ".join(names.split()) in error["message"]
    assert "COLOUR" not in error["message"]


@pytest.mark.parametrize(
    ("launcher", "name"),
    [("mpirun", "MASTER_ADDR"), ("torchrun", "OMP_NUM_THREADS"), ("torchrun", "NCCL_SOCKET_IFNAME")],
)
def test_what_another_launcher_sets_is_the_users_own(launcher: str, name: str) -> None:
    assert read_variables([f"{name}=1"], launcher) == {name: "1"}


def test_what_is_no_folder_is_refused_before_anything_is_read(
    vsml: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = vsml("job", "run", "-o", "json", "--folder", "absent", "--", "true")
    assert (ended.status, '"job.folder"' in ended.out) == (2, True)


@pytest.mark.parametrize(
    ("file", "within", "namespace", "named"),
    [
        ("cluster.toml", RunIn.GUEST, None, ""),
        ("cluster.toml", RunIn.CONTAINER, None, "--run-in container "),
        ("my cluster.toml", RunIn.GUEST, None, "-f 'my cluster.toml' "),
        ("cluster.toml", RunIn.KUBERNETES, "ml", "--run-in kubernetes --namespace ml "),
    ],
)
def test_where_a_job_runs_is_named_by_options(file: str, within: RunIn, namespace: str | None, named: str) -> None:
    place = PlaceOptions(within=within, namespace=namespace, context=None)
    assert name_options(Path(file), place).of_job == named


@pytest.mark.parametrize(("state", "named"), [(JobState.RUNNING, True), (JobState.ENDED, False)])
def test_after_a_ctrl_c_only_a_job_that_ran_is_said_to_go_on(
    vsml: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, state: JobState, *, named: bool
) -> None:
    def interrupt(*_given: object, **_more: object) -> None:
        raise KeyboardInterrupt

    found = JobList(cluster="train", jobs=(job("train-0a1b2c", state),), errors={})
    monkeypatch.setattr(logs, "open_jobs", lambda *_given, **_more: None)
    monkeypatch.setattr(logs, "find_jobs", lambda *_given: found)
    monkeypatch.setattr(logs, "follow_job", interrupt)
    ended = vsml("job", "logs", "-f", "other.toml")
    assert (ended.status, "-f other.toml train-0a1b2c" in ended.err) == (130, named)


def test_nodes_that_cannot_be_asked_are_a_line_for_each_reason(
    vsml: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    off = {f"node-{at}": GuestError(reason="off", code="guest.off", target="x", hint="why") for at in (1, 2, 3)}
    lost = {"node-9": GuestError(reason="lost", code="guest.unreachable", target="x", hint="why")}
    found = JobList(cluster="train", jobs=(job("train-0a1b2c", JobState.RUNNING),), errors=off | lost)
    monkeypatch.setattr(list_jobs, "open_jobs", lambda *_given, **_more: None)
    monkeypatch.setattr(list_jobs, "find_jobs", lambda *_given: found)
    ended = vsml("job", "list")
    assert (ended.status, len(ended.err.splitlines())) == (5, 4)  # what, two reasons, what to type
    assert "node-[1-3]: off" in ended.err
    listed = json.loads(vsml("job", "list", "-o", "json").out)
    assert [each["code"] for each in listed["errors"]] == ["job.not-listed"]
    assert listed["data"]["unreachable"]["node-9"]["code"] == "guest.unreachable"


def test_a_user_without_a_name_starts_jobs(vsml: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def find_no_name() -> str:
        raise KeyError("uid not found")

    def start(_spec: object, _guests: object, _nodes: object, asked: JobRequest) -> None:
        raise NotPossible(asked.by, code="job.started")

    nodes = SimpleNamespace(spec=cluster(1), guests=None, places=None)
    monkeypatch.setattr("getpass.getuser", find_no_name)
    monkeypatch.setattr(run, "open_nodes", lambda *_given, **_more: nodes)
    monkeypatch.setattr("vsphere_ml.flows.jobs.start.start_job", start)
    (error,) = json.loads(vsml("job", "run", "-o", "json", "--", "true").out)["errors"]
    assert (error["code"], error["message"].partition("@")[0]) == ("job.started", str(os.getuid()))


class Recalling:
    """Guests that know where one node was that the file does not have any more; each is entered for one process."""

    def recall(self, names: tuple[str, ...]) -> dict[str, GuestPlace]:
        return {name: GuestPlace(name=name, address="10.0.0.2", vm="") for name in names if name == "node-02"}

    def each(self, places: Sequence[GuestPlace], _work: object) -> dict[str, int]:
        return {place.name: 1 for place in places}


def test_a_job_is_stopped_on_the_nodes_of_its_record_and_not_only_of_the_file() -> None:
    first = GuestPlace(name="node-01", address="10.0.0.1", vm="vm-1")
    guests: Any = Recalling()
    nodes = JobPlaces(places=(first,), errors={})
    stopped = OpenNodes(spec=cluster(1), guests=guests, places=nodes, clock=SystemClock()).stop(RECORD)
    assert (set(stopped.ended), set(stopped.errors)) == ({"node-01", "node-02"}, {"node-03", "node-04"})


def test_help_on_a_narrow_terminal_names_every_choice_whole(
    vsml: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    words = set(re.findall(r"\w+", vsml("job", "run", "--help").out))
    assert words >= {"horovodrun", "mpirun", "torchrun", "none", "guest", "container", "kubernetes"}
    assert words >= set(map(str, Transport))
