"""What `vsml bench study` asks for, and a study's report from its record."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.conftest import QUAD
from tests.fakes.requirements import cluster
from tests.unit.bench import synthetic
from tests.unit.bench.studies.studies import measured, refused, spec
from vsphere_ml.bench.model.record import Workload
from vsphere_ml.bench.model.transports import Transport
from vsphere_ml.bench.studies import STUDIES, pvrdma
from vsphere_ml.cli.app import run
from vsphere_ml.cli.bench.records.report import StudyName
from vsphere_ml.cli.bench.run_options import (
    BenchOptions,
    MatrixOptions,
    PodImageOptions,
    PodOptions,
    RepeatOptions,
    ScriptOptions,
    SettingOptions,
    SweepOptions,
    TrainOptions,
    WorkloadName,
)
from vsphere_ml.cli.bench.studies.study import study_spec

if TYPE_CHECKING:
    from pathlib import Path

    from vsphere_ml.bench.launch.matrix import BenchSpec


def asked(name: str, most: int = 4, **matrix: Any) -> BenchSpec:
    given = BenchOptions(
        matrix=MatrixOptions(**matrix),
        train=TrainOptions(),
        own=ScriptOptions(),
        sweep=SweepOptions(),
        repeat=RepeatOptions(),
        settings=SettingOptions(),
        pods=PodOptions(),
        image=PodImageOptions(),
    )
    return study_spec(given, cluster(most), STUDIES[name], most)


def test_every_study_can_be_named() -> None:
    assert [*StudyName] == [*STUDIES]


def test_what_nobody_names_is_the_study_s() -> None:
    made = asked("pvrdma")
    assert (made.nodes, made.transports) == ((1, 2, 3, 4), tuple(Transport))
    assert (made.launcher, made.backend, made.workloads) == ("mpirun", "mpi", pvrdma.DESIGN.workloads)
    assert asked("pvrdma", most=8).nodes == (1, 2, 3, 4)
    assert len(asked("tcp-stacks", most=2).stacks) == 2


def test_what_a_person_names_wins() -> None:
    made = asked(
        "pvrdma", nodes=["2"], transport=[Transport.TCP], workload=[WorkloadName.ALLREDUCE], launcher="horovodrun"
    )
    assert (made.nodes, made.transports, made.workloads) == ((2,), (Transport.TCP,), (Workload.ALLREDUCE,))
    assert (made.launcher, made.backend) == ("horovodrun", "gloo")


@pytest.mark.parametrize("options", ["passthrough --transport pvrdma", "pvrdma --script mine.py", "no-such-study"])
def test_what_a_study_does_not_compare_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, options: str
) -> None:
    (tmp_path / "cluster.toml").write_text(QUAD)
    name, *more = options.split()
    status = run(["bench", "study", name, str(tmp_path / "cluster.toml"), *more, "-o", "json"])
    assert (status, json.loads(capsys.readouterr().out)["errors"][0]["code"]) == (2, "usage")


def test_a_study_is_reported_from_its_record(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    cells = pvrdma.DESIGN.cells(spec(nodes=(2,), transports=(Transport.TCP, Transport.PVRDMA)))
    runs = (*measured(cells[0]), refused(cells[1], "bench.no-rdma", "no RDMA"))
    record, page = synthetic.write(runs, tmp_path / "record"), tmp_path / "page.html"
    words = ["bench", "report", str(record), "--study", "pvrdma", "--html", str(page), "-o", "json"]
    assert run(words) == 0
    answers = json.loads(capsys.readouterr().out)["data"]
    assert answers["columns"] == ["tcp", "pvrdma"]
    states = [cell["state"] for row in answers["rows"] for cell in row["cells"]]
    assert (states, "bench.no-rdma" in page.read_text()) == (["measured", "refused"], True)
