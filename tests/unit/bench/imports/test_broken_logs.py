"""Logs that are cut, joined or changed: read rightly, or refused; never wrong without a word."""

from __future__ import annotations

import random
import re

import pytest

from tests.fakes import public_logs
from tests.fuzz import importers
from tests.fuzz.importers import wholes
from vsphere_ml.bench.imports.parsed import ImportOptions
from vsphere_ml.core.errors import ConfigError

WHOLES = {each.name: each for each in wholes()}
SHORT = ("nccl-tests.txt", "osu.txt", "osu-full.txt", "horovod.txt", "tf-cnn.txt", "ib-write-bw.txt", "iperf3-480")


@pytest.mark.parametrize("name", SHORT)
def test_a_log_cut_at_any_byte_gives_its_own_figures_or_none(name: str) -> None:
    full = WHOLES[name]
    for at in range(len(full.content)):
        importers.check_cut(full, at)


@pytest.mark.parametrize("name", [name for name in WHOLES if not name.startswith("abci-bcast")])
def test_a_log_cut_after_any_line_says_what_is_missing(name: str) -> None:
    full = WHOLES[name]
    lines = full.content.splitlines(keepends=True)
    at = 0
    for line in lines[:200]:
        at += len(line)
        importers.check_cut(full, at)


def test_two_logs_in_one_file_are_never_one_run() -> None:
    logs = [WHOLES[name] for name in (*SHORT, "superbench-alltoall", "rccl-2075-broadcast", "horovod-712-pytorch")]
    for first in logs:
        for second in logs:
            importers.check_joined(first, second)


def test_two_runs_of_one_configuration_in_one_file_are_refused() -> None:
    for name in SHORT[:-1]:
        full = WHOLES[name]
        other = full.content.replace(b"640.00", b"320.00") if name == "tf-cnn.txt" else full.content
        with pytest.raises(ConfigError) as caught:
            public_logs.imported(full.content + other, full.given)
        assert caught.value.code == "import.joined", name


def again(name: str, first: str, last: str) -> str:
    """Return a log in which the lines from one that begins so to one that begins so are there twice."""
    lines = WHOLES[name].content.decode().splitlines()
    start = next(at for at, line in enumerate(lines) if line.strip().startswith(first))
    end = next(at for at, line in enumerate(lines) if at >= start and line.strip().startswith(last)) + 1
    return "\n".join([*lines[:end], *lines[start:]]) + "\n"


@pytest.mark.parametrize(
    "text",
    [
        again("nccl-tests.txt", "#  Rank  0", "#  Rank  1"),
        again("osu.txt", "1048576", "67108864"),
        again("osu.txt", "# OSU", "# OSU"),
        again("ib-write-bw.txt", "RDMA_Write", "RDMA_Write"),
        again("ib-write-bw.txt", "#bytes", "8388608"),
        again("tf-cnn.txt", "Model:", "Model:").replace("resnet50", "vgg16", 1),
        again("tf-cnn.txt", "Model:", "Model:").replace("Model:       resnet50", "Variables: horovod", 1)
        + "total images/sec: 320.00\n",
        again("tf-cnn.txt", "total", "total"),
    ],
    ids=["ranks", "sizes", "titles", "tests", "tables", "models", "totals that differ", "totals"],
)
def test_a_part_of_another_run_in_a_log_is_refused_as_that(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        public_logs.imported(text, ImportOptions(nodes=2, ranks=2))
    assert caught.value.code == "import.joined"


@pytest.mark.parametrize("seed", range(4))
def test_broken_logs_are_read_or_refused(seed: int) -> None:
    generator = random.Random(seed)
    for _ in range(150):
        importers.broken(generator)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Batch size: 64 global\n32 per device\ntotal images/sec: 9e400\n", "import.empty"),
        ("Batch size: 64 global\n32 per device\ntotal images/sec: 637,6\n", "import.empty"),
        ("Batch size: 64 global\n32 per device\ntotal images/sec: 6", "import.empty"),
        ("Batch size: 64 global\n32 per device\ntotal images/sec: 640.", "import.empty"),
    ],
)
def test_a_number_that_is_none_is_not_read_in_part(text: str, code: str) -> None:
    with pytest.raises(ConfigError) as caught:
        public_logs.imported(text, ImportOptions(nodes=2))
    assert caught.value.code == code


@pytest.mark.parametrize("size", ["1e400", "1" * 400, "1" * 5000, "NaN", "-5", "1e18"])
def test_absurd_sizes_are_refused_and_no_bug(size: str) -> None:
    table = WHOLES["nccl-tests.txt"].content.replace(b" 67108864 ", f" {size} ".encode())
    document = WHOLES["nccl-tests.json"].content.replace(b'"size": 67108864', f'"size": {size}'.encode())
    run = importers.attempt(table, ImportOptions())
    assert run is None or "import.left-out" in {each.code for each in run.diagnostics}
    assert importers.attempt(document, ImportOptions()) is None


def test_a_json_log_that_is_cut_is_told_as_that_and_two_in_a_file_as_two() -> None:
    content = (importers.SAMPLES / "iperf3.json").read_bytes()
    with pytest.raises(ConfigError) as cut:
        public_logs.imported(content[: len(content) // 2], ImportOptions(nodes=2))
    assert cut.value.code == "import.unknown"
    assert len(cut.value.problems) == 1
    with pytest.raises(ConfigError) as two:
        public_logs.imported(content + content, ImportOptions(nodes=2))
    assert two.value.code == "import.joined"


@pytest.mark.parametrize(
    ("old", "new"),
    [(b'"size": 67108864', b'"size": NaN'), (b'"size"', b'"sizes"'), (b'"config": {', b'"config": 5, "other": {')],
)
def test_json_that_is_not_as_the_tool_writes_it_is_refused_without_the_names_of_python(old: bytes, new: bytes) -> None:
    content = WHOLES["nccl-tests.json"].content
    assert old in content
    with pytest.raises(ConfigError) as refused:
        public_logs.imported(content.replace(old, new), ImportOptions(nodes=2))
    assert refused.value.code == "import.unknown"
    assert not [each for each in refused.value.problems if re.search(r"[a-z]Error|object|indices", each.message)]
