"""The programs for guests: they stand alone, and say so in any interpreter."""

from __future__ import annotations

import argparse
import ast
import json
import os
import socket
import subprocess
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from vsphere_ml.bench.launch import remote_job
from vsphere_ml.bench.workloads import allreduce, rank, train

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FILES = sorted(remote_job.WORKLOADS.glob("[a-z]*.py"))
SCRIPTS = [each for each in FILES if "__main__" in each.read_text()]  # the others are engines of `train.py`


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda each: each.name)
def test_help_needs_nothing_but_the_interpreter(script: Path, tmp_path: Path) -> None:
    completed = subprocess.run(
        [sys.executable, "-I", "-S", script, "--help"], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert completed.stdout.startswith("usage: ")


@pytest.mark.parametrize("script", FILES, ids=lambda each: each.name)
def test_nothing_of_vsml_is_imported(script: Path) -> None:
    modules = {
        name
        for node in ast.walk(ast.parse(script.read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [each.name for each in node.names])
    }
    assert not {name for name in modules if name.startswith(("vsphere_ml", "tests"))}


TALKS_SHORTLY = """\
import socket, sys, time
time.sleep(1)
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))):
    time.sleep(1.5)  # less than the usual time between two looks
"""


def test_a_rank_sees_with_whom_a_short_program_talked(tmp_path: Path) -> None:
    rank = (remote_job.WORKLOADS / "rank.py").read_text().replace('startswith("127.")', 'startswith("0.")')
    (tmp_path / "rank.py").write_text(rank)  # which leaves out what goes to the same system
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        program = [sys.executable, "-c", TALKS_SHORTLY, port]
        subprocess.run(
            [sys.executable, tmp_path / "rank.py", "--folder", tmp_path, "--", *program],
            check=True,
            env={"HOROVOD_RANK": "0", "HOROVOD_SIZE": "2", "PATH": "/usr/bin:/bin"},
        )
    (traffic,) = [
        each for line in (tmp_path / "rank-0.jsonl").read_text().splitlines() if "peers" in (each := json.loads(line))
    ]
    assert traffic["peers"] == [{"own": "127.0.0.1", "other": "127.0.0.1", "sockets": 1}]


def test_a_rank_tells_its_place_and_becomes_its_program(tmp_path: Path) -> None:
    program = [sys.executable, "-c", "import os; print(os.environ['VSML_BENCH_FILE'])"]
    completed = subprocess.run(
        [sys.executable, remote_job.WORKLOADS / "rank.py", "--folder", tmp_path, "--interface", "lo", "--", *program],
        capture_output=True,
        text=True,
        check=True,
        env={"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "4", "PATH": "/usr/bin:/bin"},
    )
    assert completed.stdout.strip() == str(tmp_path / "rank-3.jsonl")
    line = (tmp_path / "rank-3.jsonl").read_text()
    assert '"rank": 3, "size": 4' in line
    assert '"name": "lo"' in line


def run_rank(folder: Path, *program: str) -> subprocess.CompletedProcess[bytes]:
    words = ["--folder", str(folder), "--work-folder", str(folder / "work"), "--", *program]
    (folder / "work").mkdir()
    env = {**os.environ, "RANK": "3", "WORLD_SIZE": "4"}
    script = remote_job.WORKLOADS / "rank.py"
    return subprocess.run([sys.executable, script, *words], env=env, capture_output=True, check=False, timeout=60)


def test_a_program_of_the_users_is_started_in_its_folder_and_each_line_has_its_rank(tmp_path: Path) -> None:
    ended = run_rank(tmp_path, "sh", "-c", "pwd; printf '10%%\\r20%%\\r\\n\\377 no end'; echo wrong >&2; exit 5")
    work = str(tmp_path / "work").encode()
    assert ended.stdout == b"[3] " + work + b"\n[3] 10%\n[3] 20%\n[3] \xff no end\n"
    assert (ended.stderr, ended.returncode) == (b"[3] wrong\n", 5)


def test_a_program_that_is_not_there_is_named_without_a_traceback(tmp_path: Path) -> None:
    ended = run_rank(tmp_path, "no-such-program")
    assert (ended.stdout, ended.returncode) == (b"", 127)
    assert ended.stderr.startswith(b"[3] no-such-program: ")
    assert ended.stderr.count(b"\n") == 1


@pytest.mark.parametrize(("asked", "value"), [({}, "=mlx5_2:1"), ({"NCCL_IB_HCA": "=mlx5_9"}, "=mlx5_9")])
def test_a_rank_has_its_nodes_variables_unless_the_launch_sets_them(
    tmp_path: Path, asked: dict[str, str], value: str
) -> None:
    (tmp_path / "node.json").write_text('{"NCCL_IB_HCA": "=mlx5_2:1"}')
    done = subprocess.run(
        [sys.executable, remote_job.WORKLOADS / "rank.py", "--folder", tmp_path, "--", "sh", "-c", "echo $NCCL_IB_HCA"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **asked},
    )
    assert done.stdout == f"{value}\n"


def test_counters_of_priorities_are_those_that_ethtool_prints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    printed = (
        "NIC statistics:\n     tx_packets: 9\n     rx_prio3_bytes: 8\n     tx_prio3_bytes: 7\n     tx_prio0_bytes: 6\n"
    )
    (tmp_path / "ethtool").write_text(f'#!/bin/sh\ntest "$*" = "-S eth1" && printf %s "{printed}"\n')
    (tmp_path / "ethtool").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert rank.priority_counters("eth1") == {"3": 7, "0": 6}
    assert rank.priority_counters("eth2") == {}


def test_a_rank_leaves_open_what_mpichs_launcher_talks_by(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    program = [sys.executable, "-c", "import os; os.write(int(os.environ['PMI_FD']), b'init')"]
    try:
        subprocess.run(
            [sys.executable, remote_job.WORKLOADS / "rank.py", "--folder", tmp_path, "--", *program],
            check=True,
            pass_fds=(writer,),
            env={"PMI_RANK": "0", "PMI_SIZE": "1", "PMI_FD": str(writer), "PATH": "/usr/bin:/bin"},
        )
        assert os.read(reader, 4) == b"init"
    finally:
        os.close(reader)
        os.close(writer)


def test_counters_are_those_of_adapters_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("lo", "eth0"):
        (tmp_path / name / "statistics").mkdir(parents=True)
        (tmp_path / name / "statistics" / "tx_bytes").write_text("1000\n")
        (tmp_path / name / "statistics" / "tx_packets").write_text("10\n")
    (tmp_path / "bonding_masters").write_text("bond0\n")  # where the driver of bonds is loaded
    monkeypatch.setattr(allreduce, "ADAPTERS", str(tmp_path))
    assert allreduce.read_counters() == {"eth0": (1000, 10)}
    assert allreduce.differences({"eth0": (400, 4), "eth1": (1, 1)}, {"eth0": (1000, 10)}) == {"eth0": [600, 6]}


class Ticking:
    """A clock that goes on by so much each time somebody does something."""

    def __init__(self) -> None:
        self.now = 100.0

    def read(self) -> float:
        return self.now

    def spend(self, seconds: float) -> None:
        self.now += seconds


def told_by_training(
    monkeypatch: pytest.MonkeyPatch, path: Path, *, steps: int, local_every: int
) -> list[dict[str, Any]]:
    """Return what `train` tells whose batches take 2 ms, steps 50 ms, lines 1 ms, and local steps 40 ms."""
    clock = Ticking()
    monkeypatch.setattr(train, "time", SimpleNamespace(perf_counter=clock.read, monotonic=clock.read))
    monkeypatch.setenv("VSML_BENCH_FILE", str(path))

    def batches() -> Iterator[tuple[str]]:
        while True:
            clock.spend(0.002)
            yield ("batch",)

    def step(_batch: str) -> float:
        clock.spend(0.050)
        return 1.25

    def local(_batch: str) -> tuple[float, float]:
        clock.spend(0.040)
        return 0.030, 0.010

    def emit(kind: str, **what: object) -> None:
        clock.spend(0.001)
        written(kind, **what)

    written = train.emit
    monkeypatch.setattr(train, "emit", emit)
    given = argparse.Namespace(steps=steps, until="", local_every=local_every)
    training: Any = SimpleNamespace(ranks=2, images=batches(), step=step, make_local_step=lambda: local)
    train.train(training, given)
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_periods_of_training_come_to_its_wall_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    lines = told_by_training(monkeypatch, tmp_path / "rank-0.jsonl", steps=10, local_every=4)
    kinds = [each["kind"] for each in lines]
    assert (kinds.count("step"), kinds.count("local"), kinds[-1]) == (10, 2, "wall")
    periods = sum(each["seconds"] for each in lines[:-1])
    assert periods == pytest.approx(lines[-1]["seconds"], rel=0.005)
    second = lines[1]
    assert (second["input_s"], second["work_s"], second["seconds"], second["loss"]) == (0.002, 0.05, 0.053, 1.25)
    assert [(each["compute_s"], each["exchange_s"]) for each in lines if each["kind"] == "local"] == [(0.03, 0.01)] * 2


def test_what_kept_cpus_from_running_is_a_share_of_what_passed() -> None:
    before = {"time_s": 10.0, "cpu_ticks": 1000.0, "steal_ticks": 5.0, "pressure_s": 1.0}
    after = {"time_s": 20.0, "cpu_ticks": 3000.0, "steal_ticks": 105.0, "pressure_s": 3.5}
    assert rank.contention(before, after) == {"steal": 0.05, "pressure": 0.25}
    del after["pressure_s"]  # a kernel without PSI
    assert rank.contention(before, after) == {"steal": 0.05}
    assert set(rank.cpu_counters()) >= {"time_s", "cpu_ticks", "steal_ticks"}


class Tensor(list[float]):
    """As much of TensorFlow's tensor as a sweep uses."""

    def __getitem__(self, at: Any) -> Any:
        return Tensor([list.__getitem__(self, at)])

    def numpy(self) -> float:
        return next(iter(self))


def wrong_in(exchange: int | None, capsys: pytest.CaptureFixture[str]) -> bool:
    """Return what a sweep of two warm-ups and three repeats tells, in which this exchange gives a wrong sum."""
    made = iter(range(100))

    def all_reduce(values: Tensor, *, op: str, name: str) -> Tensor:
        assert op == "sum"
        wrong = name.startswith("sweep") and next(made) == exchange
        return Tensor([4.0 if wrong else 3.0] * len(values))

    tf = SimpleNamespace(
        fill=lambda shape, value: Tensor([value] * shape[0]),
        zeros=lambda shape: Tensor([0.0] * shape[0]),
        function=lambda made: made,
        equal=lambda values, total: [each == total for each in values],
        reduce_all=all,
    )
    hvd = SimpleNamespace(rank=lambda: 0, size=lambda: 2, Sum="sum", allreduce=all_reduce)
    allreduce.sweep(tf, hvd, 16, argparse.Namespace(warmup=2, repeats=3))
    return not json.loads(capsys.readouterr().out)["right"]


def test_a_wrong_sum_is_told_whichever_exchange_gave_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VSML_BENCH_FILE", raising=False)
    assert [wrong_in(each, capsys) for each in (None, *range(6))] == [False, *[True] * 6]
