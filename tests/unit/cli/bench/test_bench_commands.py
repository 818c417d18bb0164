"""The commands of `vsml bench` that need no cluster, from their arguments to output and exit status."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.conftest import QUAD
from tests.fakes import public_logs
from tests.unit.bench import synthetic
from tests.unit.bench.synthetic import Machine
from vsphere_ml.bench.gate import baseline
from vsphere_ml.bench.model.record import Environment
from vsphere_ml.cli.app import run
from vsphere_ml.cli.bench.run_options import default_launches

if TYPE_CHECKING:
    from tests.golden import Golden

CASES = Path(__file__).parents[3] / "cases" / "port"


@pytest.fixture
def record(tmp_path: Path) -> Path:
    return synthetic.write(synthetic.record(nodes=2, launches=3), tmp_path / "a")


@pytest.fixture
def slower(tmp_path: Path) -> Path:
    machine = Machine(usable_bytes_per_s=0.85 * 10e9 / 8)
    return synthetic.write(synthetic.record(machine=machine, nodes=2, launches=3, seed=2), tmp_path / "b")


def answer(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, dict[str, Any]]:
    status = run(["bench", *map(str, arguments), "-o", "json"])
    return status, json.loads(capsys.readouterr().out)


def test_a_ported_script_passes_and_another_does_not(capsys: pytest.CaptureFixture[str]) -> None:
    assert answer(capsys, "check", CASES / "loop.txt")[0] == 0
    status, answers = answer(capsys, "check", CASES / "plain.txt")
    assert status == 6
    assert answers["status"] == "partial"
    assert answers["errors"][0]["code"] == "bench.not-ported"
    assert [each["step"]["number"] for each in answers["data"]["found"]] == [1, 2, 3, 4, 5, 6, 7]


def test_a_script_that_is_none(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text("def f(:\n")
    status, answers = answer(capsys, "check", tmp_path / "bad.py")
    assert (status, answers["errors"][0]["problems"][0]["line"]) == (2, 1)
    status, answers = answer(capsys, "check", tmp_path)
    assert (status, answers["errors"][0]["code"]) == (2, "file.unreadable")


@pytest.mark.parametrize(
    "arguments",
    [
        "gate {record} --baseline {record} --tolerance nan",
        "gate {record} --of-bound nan",
        "import {record}/x.log --results {record}/i --link-gbit nan",
        "run {record}/cluster.toml --max-time nan",
        "run {record}/cluster.toml --max-time inf",
    ],
)
def test_what_is_no_number_is_never_counted_with(
    capsys: pytest.CaptureFixture[str], record: Path, arguments: str
) -> None:
    (record / "x.log").write_text("")
    (record / "cluster.toml").write_text("")
    status, answers = answer(capsys, *arguments.format(record=record).split())
    assert (status, answers["errors"][0]["code"]) == (2, "usage")


def test_every_path_from_a_gpus_memory_outward_is_listed(capsys: pytest.CaptureFixture[str], golden: Golden) -> None:
    assert run(["bench", "predict", "--model", "bert-large", "--nodes", "2", "--path", "all"]) == 0
    golden(capsys.readouterr().out)


ROOFLINE = "predict --model bert-large --nodes 2,4 --batch 32 --flops-per-sample 5e11 --math mixed --roofline a100-40"


def test_a_roofline_is_told_and_drawn(capsys: pytest.CaptureFixture[str], golden: Golden, tmp_path: Path) -> None:
    file = tmp_path / "roofline.html"
    assert run(["bench", *ROOFLINE.split(), "--html", str(file)]) == 0
    golden(capsys.readouterr().out)
    page = file.read_text()
    assert page.count("<svg") == 2  # for screens and for telephones
    assert page.count("<circle") == 2 * (2 + 2)  # in each two ridges and two numbers of nodes
    assert "<script" not in page


def test_a_page_without_a_roofline_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    status, answers = answer(capsys, "predict", "--model", "bert-large", "--html", str(tmp_path / "page.html"))
    assert (status, answers["errors"][0]["code"], [*tmp_path.iterdir()]) == (2, "usage", [])


def test_what_a_rank_keeps_is_held_against_its_vgpu(capsys: pytest.CaptureFixture[str], golden: Golden) -> None:
    arguments = ("predict", "--model", "bert-large", "--nodes", "2", "--vgpu", "A100-5C", "--optimizer", "adam")
    assert run(["bench", *arguments]) == 0
    golden(capsys.readouterr().out)
    status, answers = answer(capsys, *arguments, "--activation-mbytes", "1000")
    assert (status, answers["data"]["memory"]["fits"]) == (0, False)


def test_bert_large_is_predicted_as_corrected(capsys: pytest.CaptureFixture[str], golden: Golden) -> None:
    arguments = ("predict", "--parameters", "340e6", "--link-gbit", "25", "--iterations", "3000000")
    status, answers = answer(capsys, *arguments)
    assert status == 0
    assert [round(each["line_s"] * 1e3, 1) for each in answers["data"]["exchanges"]] == [
        435.2,
        580.3,
        652.8,
        761.6,
        816.0,
    ]
    assert run(["bench", *arguments]) == 0
    out = capsys.readouterr().out
    golden(out)


def test_42_gigabytes_are_84_percent(capsys: pytest.CaptureFixture[str], golden: Golden) -> None:
    assert (
        run(["bench", "predict", "--model", "resnet50", "--nics", "4", "--link-gbit", "100", "--measured-gbytes", "42"])
        == 0
    )
    golden(capsys.readouterr().out)


@pytest.mark.parametrize(
    "arguments",
    [
        "--model no-such",
        "",
        "--parameters nan",
        "--parameters 1 --link-gbit inf",
        "--parameters 1 --nodes x",
        "--parameters 1 --transport smoke",
    ],
)
def test_predictions_that_cannot_be_meant(capsys: pytest.CaptureFixture[str], arguments: str) -> None:
    status, answers = answer(capsys, "predict", *arguments.split())
    assert status == 2
    assert answers["errors"][0]["code"] in {"usage", "bench.no-model"}


def test_a_report_is_written_in_every_form(
    capsys: pytest.CaptureFixture[str], record: Path, tmp_path: Path, golden: Golden
) -> None:
    files = [tmp_path / name for name in ("r.html", "r.md", "r.csv")]
    status, answers = answer(capsys, "report", record, "--html", files[0], "--markdown", files[1], "--csv", files[2])
    assert status == 0
    assert answers["messages"] == [f"wrote {file}" for file in files]
    assert all(file.stat().st_size > 1000 for file in files)
    assert len(answers["data"]["runs"]) == 9
    assert run(["bench", "report", str(record)]) == 0
    golden(capsys.readouterr().out)


def test_a_report_that_cannot_be_written(capsys: pytest.CaptureFixture[str], record: Path) -> None:
    status, answers = answer(capsys, "report", record, "--html", record / "none" / "r.html")
    assert (status, answers["errors"][0]["code"]) == (2, "file.unwritable")


def test_explain_compare_and_gate(
    capsys: pytest.CaptureFixture[str], record: Path, slower: Path, tmp_path: Path, golden: Golden
) -> None:
    status, answers = answer(capsys, "explain", record)
    assert (status, answers["data"]["synthetic"]) == (0, True)
    status, answers = answer(capsys, "compare", record, slower)
    assert status == 0
    assert {row["answer"] for row in answers["data"]["rows"] if row["metric"] == "bus_bytes_per_s"} == {"slower"}
    junit = tmp_path / "gate.xml"
    status, answers = answer(capsys, "gate", slower, "--baseline", record, "--junit", junit)
    assert (status, answers["errors"][0]["code"]) == (6, "bench.regression")
    assert "<failure" in junit.read_text()
    status, _ = answer(capsys, "gate", record, "--baseline", record, "--of-bound", "85")
    assert status == 0
    for each in (["explain", record], ["compare", record, slower], ["gate", record]):
        assert run(["bench", *map(str, each)]) == 0
    golden(capsys.readouterr().out)


def test_records_that_cannot_be_read_or_compared(
    capsys: pytest.CaptureFixture[str], record: Path, tmp_path: Path
) -> None:
    status, answers = answer(capsys, "report", tmp_path / "none")
    assert (status, answers["errors"][0]["code"]) == (2, "record.unreadable")
    hardware = tuple(replace(each, lab=False) for each in synthetic.record(nodes=1, launches=2))
    other = synthetic.write(hardware, tmp_path / "hardware")
    status, answers = answer(capsys, "compare", record, other)
    assert (status, answers["errors"][0]["code"]) == (3, "bench.not-comparable")


def test_logs_are_imported_and_reported(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    logs = CASES.parent / "imports"
    into = tmp_path / "old"
    arguments = ("import", logs / "nccl-tests.txt", logs / "nccl-tests.json", "--results", into, "--link-gbit", "10")
    status, answers = answer(capsys, *arguments)
    assert status == 0
    assert [each["launch"] for each in answers["data"]["runs"]] == [1, 2]
    assert sorted(map(str, into.iterdir())) == sorted(answers["data"]["documents"])
    status, answers = answer(capsys, "report", into)
    assert status == 0
    assert 0.8 < answers["data"]["sweeps"][0]["share"] < 0.9
    assert run(["bench", "import", str(logs / "iperf3.json"), "--results", str(into)]) == 0
    assert "1 link" in capsys.readouterr().out
    status, answers = answer(capsys, "import", logs / "README.md", "--results", into)
    assert (status, answers["errors"][0]["code"]) == (2, "import.unknown")
    status, answers = answer(capsys, "import", tmp_path / "none", "--results", into)
    assert (status, answers["errors"][0]["code"]) == (2, "file.unreadable")


@pytest.mark.parametrize("special", ["/dev/zero", "fifo"])
def test_a_device_or_fifo_is_no_log_and_no_record(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, special: str
) -> None:
    os.mkfifo(tmp_path / "fifo")
    status, answers = answer(capsys, "import", tmp_path / special, "--results", tmp_path / "into")
    assert (status, answers["errors"][0]["code"]) == (2, "file.unreadable")
    assert not (tmp_path / "into").exists()


def test_what_a_log_does_not_tell_is_given_on_the_command_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    described = next(each for each in public_logs.descriptions() if each["id"] == "nccl-tests-44-all-gather")
    log = tmp_path / "log"
    log.write_text(public_logs.text(described))
    arguments = ("import", log, "--results", tmp_path / "into", "--ranks", "2", "--nodes", "1")
    status, answers = answer(capsys, *arguments)
    assert (status, answers["errors"][0]["code"]) == (2, "import.collective")
    assert answers["errors"][0]["hint"].startswith("--collective")
    status, answers = answer(capsys, *arguments, "--collective", "all_gather")
    assert (status, answers["data"]["runs"][0]["configuration"]["options"]["collective"]) == (0, "all_gather")
    status, answers = answer(capsys, *arguments, "--collective", "all_to_some")
    assert (status, answers["errors"][0]["code"]) == (2, "usage")


def test_published_figures_come_with_their_sources(capsys: pytest.CaptureFixture[str], golden: Golden) -> None:
    status, answers = answer(capsys, "published")
    assert status == 0
    assert all(each["source"] and each["conditions"] for each in answers["data"]["published"])
    assert run(["bench", "published"]) == 0
    golden(capsys.readouterr().out)


def test_the_selftest_refuses_without_root_and_writes_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, golden: Golden
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setenv("VSML_STATE_DIR", str(tmp_path / "state"))
    status, answers = answer(capsys, "selftest", "--results", tmp_path / "record")
    assert (status, answers["errors"][0]["code"]) == (3, "lab.no-guests")
    golden(answers["errors"][0]["message"])
    assert list(tmp_path.iterdir()) == []
    status, answers = answer(capsys, "selftest", "--rate", "fast")
    assert (status, answers["errors"][0]["code"]) == (2, "lab.bad-rate")


@pytest.mark.parametrize("wrong", ["NCCL_ALGO", "=RING", "A B=1", "VSML_BENCH_RUN=mine"])
def test_a_variable_that_is_none_or_is_not_the_users(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, wrong: str
) -> None:
    (tmp_path / "cluster.toml").write_text(QUAD)
    status, answers = answer(capsys, "run", tmp_path / "cluster.toml", "--env", wrong)
    assert (status, answers["errors"][0]["code"]) == (2, "usage")
    assert answers["errors"][0]["hint"] == "--env NCCL_ALGO=RING"


def test_what_the_launcher_sets_for_each_rank_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "cluster.toml").write_text(QUAD)
    given = ("--launcher", "torchrun", "--env", "RANK=1", "--env", "MASTER_PORT=1")
    status, answers = answer(capsys, "run", tmp_path / "cluster.toml", *given)
    assert (status, answers["errors"][0]["code"]) == (2, "bench.launcher-variable")
    assert "RANK, MASTER_PORT" in answers["errors"][0]["message"]


@pytest.mark.parametrize(
    "options",
    [
        "--script mine.py --workload train",
        "--script-args 0.25",
        "--min-nodes 1 --workload allreduce",
        "--min-nodes 1 --script mine.py",
        "--nccl-sizes 0:8",
        "--nccl-sizes 8:65G",
        "--nccl-sizes 8:4",
        "--nccl-sizes 8",
        "--engine pytorch --launcher mpirun",
        "--engine tensorflow --launcher torchrun",
        "--engine jax --launcher mpirun",
        "--engine jax --model resnet50",
        "--engine pytorch --math fp32 --math mixed_float16",
        "--engine jax --xla",
        "--launcher torchrun --workload allreduce",
        "--launcher torchrun --backend mpi",
        "--engine pytorch --min-nodes 1",
        "--engine pytorch-horovod --min-nodes 1",
        "--engine pytorch-horovod --launcher torchrun",
        "--engine pytorch-horovod --workload allreduce",
        "--nodes 1 --workload link",
    ],
)
def test_options_that_would_go_unheard_or_never_end(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, options: str, golden: Golden
) -> None:
    (tmp_path / "cluster.toml").write_text(QUAD)
    status, answers = answer(capsys, "run", tmp_path / "cluster.toml", *options.split())
    assert (status, answers["errors"][0]["code"]) == (2, "usage")
    golden(answers["errors"][0]["message"])


def test_a_gate_that_is_too_noisy_and_a_baseline_of_too_few_name_the_command_to_type(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, golden: Golden
) -> None:
    one = replace(synthetic.sweep(2), environment=Environment(invocation=("vsml", "bench", "a.toml", "-o", "json")))
    record = synthetic.write((one,), tmp_path / "one")
    status, answers = answer(capsys, "baseline", "make", record, "--results", tmp_path / "base")
    assert (status, answers["errors"][0]["code"]) == (3, "bench.no-baseline")
    command = f"vsml bench a.toml -o json --repeats 5 --results {record}"
    assert answers["errors"][0]["hint"] == command
    base = synthetic.write(tuple(replace(one, run_id=f"r{at}", launch=at) for at in range(1, 6)), tmp_path / "base")
    status, answers = answer(capsys, "gate", record, "--baseline", base)
    assert (status, answers["errors"][0]["code"]) == (3, "bench.too-noisy")
    launches = max(check["launches"] or 0 for check in answers["data"]["checks"])
    assert f"--repeats {launches} " in answers["errors"][0]["hint"]
    golden(answers["errors"][0]["hint"])


def test_no_default_is_a_number_that_means_something_else(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["bench", "run", "--help"]) == 0
    assert "[default: 0.0]" not in " ".join(capsys.readouterr().out.replace("│", " ").split())


def test_without_options_the_newest_record_makes_the_baseline_of_its_cluster_and_passes_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    status, answers = answer(capsys, "gate")
    assert (status, answers["errors"][0]["code"], answers["errors"][0]["target"]) == (2, "record.unreadable", "bench")
    old = synthetic.write(synthetic.record(nodes=2, launches=1), tmp_path / "bench" / "z-older")
    for each in old.iterdir():
        os.utime(each, (1, 1))
    synthetic.write(synthetic.record(nodes=1, launches=5), tmp_path / "bench" / "a-newer")
    status, answers = answer(capsys, "baseline", "make")
    assert (status, answers["data"]["baseline"], len(answers["data"]["documents"])) == (0, "baselines/synthetic", 5)
    status, answers = answer(capsys, "gate")
    assert status == 0
    assert {each["kind"] for each in answers["data"]["checks"]} == {"outcome", "baseline"}


def test_a_benchmark_launches_as_often_as_a_baseline_needs_and_a_program_of_ones_own_once() -> None:
    assert default_launches(None) == baseline.LAUNCHES >= 2
    assert default_launches(Path("train.py")) == 1
