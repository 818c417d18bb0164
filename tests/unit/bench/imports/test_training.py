"""What training programs print of one run, and what several of them print that is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes import public_logs
from vsphere_ml.bench.imports.parsed import ImportOptions
from vsphere_ml.core.errors import ConfigError

FOLDER = Path(__file__).parents[3] / "cases" / "imports"
HOROVOD = (FOLDER / "horovod.txt").read_text()
TF_CNN = "Model: resnet50\nBatch size: {everywhere} global\n  64 per device\n{more}{totals}"


def refusal(content: str, given: ImportOptions) -> str:
    with pytest.raises(ConfigError) as caught:
        public_logs.imported(content, given)
    return caught.value.code


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Total img/sec on 2", "Total img/sec on 8"),
        ("Number of GPUs: 2", "Number of GPUs: 1"),
        ("on 2 GPU(s): 637.6", "on 2 GPU(s): 640.0"),
        ("Iter #3: 321.0", "Iter #3: 331.0"),
    ],
)
def test_a_total_that_is_not_ranks_times_the_mean_is_refused(before: str, after: str) -> None:
    assert before in HOROVOD
    assert refusal(HOROVOD.replace(before, after), ImportOptions(nodes=2)) == "import.differs"


def test_horovods_total_is_not_asked_where_an_iteration_is_missing() -> None:
    lines = [line for line in HOROVOD.splitlines(keepends=True) if "Iter #3" not in line]
    run = public_logs.imported("".join(lines), ImportOptions(nodes=2))
    assert "import.left-out" in {each.code for each in run.diagnostics}


@pytest.mark.parametrize(
    ("before", "gradients"),
    [
        ("", "fp32"),
        ("$ horovodrun -np 2 python pytorch_synthetic_benchmark.py --fp16-allreduce --batch-size 32\n", "fp16"),
        ("    --fp16-allreduce \\\n", "fp16"),
        ("Namespace(batch_size=32, fp16_allreduce=True, model='resnet50')\n", "fp16"),
        ("Namespace(batch_size=32, fp16_allreduce=False, model='resnet50')\n", "fp32"),
    ],
)
def test_gradients_are_those_that_the_command_in_the_log_exchanged(before: str, gradients: str) -> None:
    assert public_logs.imported(before + HOROVOD, ImportOptions(nodes=2)).configuration.gradients == gradients


def tf_cnn(*totals: str, everywhere: int = 64, more: str = "") -> str:
    return TF_CNN.format(everywhere=everywhere, more=more, totals="".join(f"total images/sec: {x}\n" for x in totals))


@pytest.mark.parametrize("more", ["", "Variables: parameter_server\n", "Variables: replicated\n"])
def test_processes_that_run_each_for_itself_are_several_runs(more: str) -> None:
    assert refusal(tf_cnn("300.00", "301.00", more=more), ImportOptions(nodes=2)) == "import.joined"


@pytest.mark.parametrize(
    "more",
    [
        "Devices: ['horovod/gpu:0', 'horovod/gpu:1']\nVariables: horovod\n",
        "Variables: distributed_replicated\n",
        "Variables: parameter_server\nSync: True\n",
    ],
)
def test_workers_of_one_run_each_print_its_total(more: str) -> None:
    run = public_logs.imported(tf_cnn("300.00", "301.00", everywhere=128, more=more), ImportOptions(nodes=2))
    assert run.steps is not None
    assert run.configuration.ranks == 2
    assert run.steps.step_s[0][0] == pytest.approx(128 / 300)


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ("Mode: training\n", ""),
        ("Mode: BenchmarkMode.TRAIN\n", ""),
        ("Mode: forward-only\n", "import.statistic"),
        ("Mode: evaluation\n", "import.statistic"),
        ("Variables: parameter_server\nSync:        False\n", "import.statistic"),
    ],
)
def test_what_is_no_training_with_a_step_in_common_is_refused(more: str, code: str) -> None:
    log = tf_cnn("300.00", everywhere=128, more=more)
    if code:
        assert refusal(log, ImportOptions(nodes=2)) == code
    else:
        assert public_logs.imported(log, ImportOptions(nodes=2)).steps is not None


def test_there_are_no_more_nodes_than_ranks() -> None:
    assert refusal(HOROVOD, ImportOptions(nodes=3)) == "import.differs"


def test_a_horovod_run_that_lists_one_processs_devices_does_not_tell_its_ranks() -> None:
    """The total is that of horovod's docs/benchmarks.rst, over 16 GPUs at 64 images each."""
    log = tf_cnn("1656.82", more="Devices: ['/gpu:0']\nVariables: horovod\n")
    assert refusal(log, ImportOptions(nodes=4)) == "import.unknown-size"
    run = public_logs.imported(log, ImportOptions(nodes=4, ranks=16))
    assert run.steps is not None
    assert (run.configuration.ranks, run.configuration.batch) == (16, 64)
    assert run.steps.step_s[0][0] == pytest.approx(16 * 64 / 1656.82)
    multiplied = log.replace("64 global", "1024 global")
    assert public_logs.imported(multiplied, ImportOptions(nodes=4, ranks=16)).steps == run.steps


def test_ranks_whose_times_no_document_holds_are_refused_before_they_are_made() -> None:
    log = "".join(line for line in HOROVOD.splitlines(keepends=True) if "GPU" not in line or "Iter" in line)
    assert refusal(log, ImportOptions(nodes=2, ranks=10**9)) == "import.too-large"
