"""Training regimes as two processes over loopback, with what lab guests train with: what is exchanged, not how fast."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from vsphere_ml.bench.launch import remote_job
from vsphere_ml.lab import runtime

if TYPE_CHECKING:
    from pathlib import Path

PENDING = runtime.missing_need()
pytestmark = [
    pytest.mark.lab,
    pytest.mark.skipif(PENDING is not None, reason=f"no Horovod to train with: {PENDING}"),
    pytest.mark.timeout(3600),  # the runtime is built the first time
]
LONGEST_S = 120
SMALL = ("--parameters", "100000", "--samples", "960")
UNTRAINED = 2.0  # ln 10 and more before training


@pytest.fixture(scope="module")
def python() -> Path:
    return runtime.python(runtime.make_runtime(gloo_alone=True))


def trained(python: Path, folder: Path, *options: str, workers: int = 2) -> list[dict[str, dict[str, Any]]]:
    """Return the last line of each kind that each worker told."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    shared = {"WORLD_SIZE": str(workers), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    command = [str(python), str(remote_job.WORKLOADS / "regimes.py"), *SMALL, *options]
    files = [folder / f"{'-'.join(options)}-{rank}.jsonl" for rank in range(workers)]
    started = [
        subprocess.Popen(command, env={**os.environ, **shared, "RANK": str(rank), "VSML_BENCH_FILE": str(file)})
        for rank, file in enumerate(files)
    ]
    assert [each.wait(LONGEST_S) for each in started] == [0] * workers
    return [{each["kind"]: each for each in map(json.loads, file.read_text().splitlines())} for file in files]


def reduced(python: Path, folder: Path) -> list[dict[str, dict[str, Any]]]:
    """Return the same of a training by Horovod's all-reduce, which its own launcher starts."""
    rank = ["sh", "-c", f'VSML_BENCH_FILE={folder}/$HOROVOD_RANK.jsonl exec "$@"', "sh"]
    words = [str(remote_job.WORKLOADS / "regimes.py"), *SMALL, "--by", "allreduce"]
    launcher = [str(python), str(python.with_name("horovodrun")), "--gloo", "-np", "2", "-H", "localhost:2"]
    subprocess.run([*launcher, *rank, str(python), *words], check=True, timeout=LONGEST_S, cwd=folder)
    files = [folder / f"{rank}.jsonl" for rank in range(2)]
    return [{each["kind"]: each for each in map(json.loads, file.read_text().splitlines())} for file in files]


def test_every_regime_that_keeps_step_trains_the_same_model_and_all_see_as_many_samples(
    python: Path, tmp_path: Path
) -> None:
    joint = (
        "--by",
        "nothing",
        "--batch",
        "32",
        "--rate",
        "0.04",
    )  # both workers' batches as one, whose mean counts twice
    (alone,) = trained(python, tmp_path, *joint, workers=1)
    in_step = [
        trained(python, tmp_path, "--by", "servers"),
        trained(python, tmp_path, "--by", "servers", "--servers", "2"),
        reduced(python, tmp_path),
    ]
    for first, second in in_step:
        assert first["sync"] == second["sync"]
        assert first["sync"]["finite"] is True
        assert (first["regime"]["samples"], first["regime"]["steps"]) == (960, 30)
        assert first["regime"]["loss"] == pytest.approx(alone["regime"]["loss"], rel=1e-4)
    assert (alone["regime"]["samples"], alone["regime"]["steps"]) == (960, 30)
    assert alone["regime"]["loss"] < UNTRAINED


def test_without_keeping_step_workers_are_behind_each_other_and_train_all_the_same(
    python: Path, tmp_path: Path
) -> None:
    first, second = trained(python, tmp_path, "--by", "servers", "--asynchronous")
    assert first["sync"] == second["sync"]  # both pulled the last weights
    assert first["regime"]["behind"] + second["regime"]["behind"] > 0
    assert first["regime"]["loss"] < UNTRAINED
