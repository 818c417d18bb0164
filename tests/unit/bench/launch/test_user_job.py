"""A job of the user's in its first guest, for which this machine stands in."""

from __future__ import annotations

import getpass
import io
import os
import shutil
import signal
import subprocess
import tarfile
import zlib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.waiting import until
from vsphere_ml.bench.launch import user_job, work_folder
from vsphere_ml.bench.launch.launchers import Launch
from vsphere_ml.bench.launch.remote_job import find_stale_processes, stop_processes
from vsphere_ml.bench.model.job import FOLDER, MARK, USER_MARK, Runtime
from vsphere_ml.bench.model.user_job import FoundJob, JobRecord, JobSettings, JobState, build_job, encode_record
from vsphere_ml.core.errors import BenchError, ConfigError
from vsphere_ml.core.model.guest import CommandAnswer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

RECORD = JobRecord(
    run_id="train-0a1b2c",
    cluster="train",
    command=("sh", "-c", "exit"),
    launcher="ssh",
    backend="gloo",
    transport="tcp",
    ranks_per_node=1,
    nodes=(("node-1", "127.0.0.1"),),
    interface="lo",
    variables=("COLOUR",),
    folder="mine",
    started="2026-11-27T12:00:00Z",
    by="ada@desk",
)
FILE = "-f other.toml "  # as it stands in hints


class Here:
    """A shell on this machine, with the folder of all runs elsewhere and nobody to become.

    Processes are found on the whole machine, by their marks: this one has marks of its own, so that nothing of other
    tests, or of a benchmark that runs beside them, is found or ended.
    """

    name = "node-1"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.own = f"_{zlib.crc32(str(folder).encode()):08x}"

    def ask(self, commands: Mapping[str, str]) -> Mapping[str, CommandAnswer]:
        return {name: self._execute(text) for name, text in commands.items()}

    def run(self, command: str, **_how: object) -> CommandAnswer:
        answer = self._execute(command)
        assert answer.ok, answer
        return answer

    def write(self, path: str, text: str, **_how: object) -> None:
        self._at(path).write_text(self._here(text))

    def put(self, local: Path, path: str, **_how: object) -> None:
        shutil.copy(local, self._at(path))

    def get(self, path: str, local: Path) -> None:
        shutil.copy(self._at(path), local)

    def _at(self, path: str) -> Path:
        return Path(self._here(path))

    def _here(self, text: str) -> str:
        text = text.replace(FOLDER, str(self.folder))
        return text.replace(USER_MARK, USER_MARK + self.own).replace(MARK, MARK + self.own)

    def _execute(self, text: str) -> CommandAnswer:
        command = self._here(text).replace(f"runuser -u {getpass.getuser()} -- ", "")
        ended = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
        return CommandAnswer(ended.returncode, ended.stdout, ended.stderr)


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Any]:
    made: Any = Here(tmp_path / "runs")
    yield made
    for each in find_stale_processes(made):
        if each.job_id.startswith("train-"):
            os.kill(each.pid, signal.SIGKILL)


def begin(shell: Any, *command: str, record: JobRecord = RECORD, archive: Path | None = None) -> None:
    how = Launch(command=command, variables={"COLOUR": "deep blue", USER_MARK: record.run_id}, files={})
    made = build_job(record, JobSettings(runtime=Runtime(user=getpass.getuser())))
    user_job.lay_out(shell, made, how, archive)
    user_job.start(shell, made, how, record, FILE)


def find(shell: Any, record: JobRecord = RECORD) -> FoundJob:
    (found,) = [each for each in user_job.find_jobs(shell) if each.record.run_id == record.run_id]
    return found


def await_state(shell: Any, state: JobState) -> FoundJob:
    until(lambda: find(shell).state is state, lambda: str(find(shell)))
    return find(shell)


def processes(shell: Any, record: JobRecord = RECORD) -> list[int]:
    return [each.pid for each in find_stale_processes(shell) if each.job_id == record.run_id]


def test_a_job_is_found_with_its_record_and_its_status(shell: Any) -> None:
    begin(shell, "sh", "-c", 'echo "$COLOUR"; echo wrong >&2; exit 7')
    ended = await_state(shell, JobState.ENDED)
    assert (ended.record, ended.status) == (RECORD, 7)
    assert ended.ended_s is not None
    piece = user_job.peek(shell, RECORD, 0, 0)
    assert (piece.data, piece.ended_s) == (b"deep blue\nwrong\n", ended.ended_s)


def test_what_a_job_prints_comes_as_soon_as_it_is_there_from_the_byte_on_that_is_not_known(shell: Any) -> None:
    begin(shell, "sh", "-c", "echo one; sleep 1; printf '\\377 two'; sleep 900")
    seen = b""
    while seen != b"one\n\xff two":
        piece = user_job.peek(shell, RECORD, len(seen), 5)
        assert (piece.state, piece.status) == (JobState.RUNNING, None)
        seen += piece.data


def test_what_ranks_leave_is_ended_before_the_status_is_there(shell: Any) -> None:
    begin(shell, "sh", "-c", "trap '' TERM; setsid sleep 900 & exit 0")
    await_state(shell, JobState.ENDED)
    assert processes(shell) == []


def test_a_job_is_stopped_and_no_other_one_is(shell: Any) -> None:
    other = replace(RECORD, run_id="train-0a1b2c3")
    begin(shell, "sleep", "900")
    begin(shell, "sleep", "900", record=other)
    assert user_job.stop(shell, RECORD) >= 2
    assert (find(shell).state, processes(shell)) == (JobState.STOPPED, [])
    assert find(shell, other).state is JobState.RUNNING
    assert len(processes(shell, other)) >= 2


def test_no_benchmark_ends_a_job(shell: Any) -> None:
    begin(shell, "sleep", "900")
    stop_processes(shell)
    assert find(shell).state is JobState.RUNNING


def test_a_job_that_had_ended_is_not_stopped(shell: Any) -> None:
    begin(shell, "true")
    await_state(shell, JobState.ENDED)
    assert user_job.stop(shell, RECORD) == 0
    assert find(shell).state is JobState.ENDED


def test_a_job_whose_script_was_killed_is_lost(shell: Any) -> None:
    begin(shell, "sleep", "900")
    for each in processes(shell):
        os.kill(each, signal.SIGKILL)
    assert await_state(shell, JobState.LOST).status is None


def test_a_job_that_does_not_begin_is_an_error(shell: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user_job, "START_S", 1)
    monkeypatch.setattr(user_job, "SCRIPT", "exit 1\n")
    with pytest.raises(BenchError) as raised:
        begin(shell, "true")
    assert (raised.value.code, raised.value.target) == ("job.not-started", "node-1")
    assert FILE in raised.value.hint


def test_a_folder_is_there_and_what_is_new_in_it_comes_back(shell: Any, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    (mine / ".git").mkdir(parents=True)
    (mine / ".git" / "config").touch()
    (mine / "old").write_text("old")
    (mine / "changed").write_text("before")
    work_folder.pack(mine, tmp_path / "archive")
    work = f"{shell.folder}/jobs/{RECORD.run_id}/work"
    made = f"cd {work}; ls -A; echo after >changed; mkdir out; echo new >'out/a b'; ln -s /etc/passwd link"
    begin(shell, "sh", "-c", made, archive=tmp_path / "archive")
    await_state(shell, JobState.ENDED)
    assert user_job.peek(shell, RECORD, 0, 0).data == b"changed\nold\n"
    user_job.fetch(shell, RECORD, tmp_path / "fetched")
    names = work_folder.unpack(tmp_path / "fetched", tmp_path / "into")
    assert names == ("job.log", "work/changed", "work/out/a b"), "a link that leads elsewhere is left out"
    assert (tmp_path / "into" / "work" / "changed").read_text() == "after\n"
    user_job.delete(shell, RECORD)
    assert user_job.find_jobs(shell) == ()


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[]", "{}", '{"schema": "vsml.job/1"}', '{"schema": "vsml.job/9"}'),
        encode_record(replace(RECORD, run_id="x; touch /tmp/mine")),
        encode_record(replace(RECORD, run_id="..")),
        encode_record(replace(RECORD, nodes=())),
        encode_record(replace(RECORD, nodes=(("../../mine", "10.0.0.1"),))),
        encode_record(replace(RECORD, ranks_per_node=0)),
        encode_record(replace(RECORD, transport="pigeon")),
        encode_record(replace(RECORD, launcher="slurm")),
    ],
)
def test_a_record_that_is_none_is_an_error(shell: Any, text: str) -> None:
    folder = shell.folder / "jobs" / "train-1"
    folder.mkdir(parents=True)
    (folder / "job.json").write_text(text)
    with pytest.raises(BenchError) as raised:
        user_job.find_jobs(shell)
    assert (raised.value.code, raised.value.target) == ("job.bad-record", "node-1")


def test_what_is_no_folder_cannot_be_copied(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as raised:
        work_folder.pack(tmp_path / "absent", tmp_path / "archive")
    assert raised.value.code == "job.folder"


def link_to_nothing() -> bytes:
    made = io.BytesIO()
    link = tarfile.TarInfo("link")
    link.type, link.linkname = tarfile.LNKTYPE, "absent"
    with tarfile.open(fileobj=made, mode="w:gz") as opened:
        opened.addfile(link)
    return made.getvalue()


def damaged() -> bytes:
    made, packer = io.BytesIO(), zlib.compressobj(wbits=31)
    entry = tarfile.TarInfo("zeros")
    entry.size = 900_000
    with tarfile.open(fileobj=made, mode="w") as opened:
        opened.addfile(entry, io.BytesIO(bytes(entry.size)))
    return packer.compress(made.getvalue()[:500_000]) + packer.flush(zlib.Z_FULL_FLUSH) + b"\xff" * 64


@pytest.mark.parametrize("archive", [b"no archive", damaged(), link_to_nothing()])
def test_what_is_no_archive_is_an_error(tmp_path: Path, archive: bytes) -> None:
    (tmp_path / "archive").write_bytes(archive)
    with pytest.raises(BenchError) as raised:
        work_folder.unpack(tmp_path / "archive", tmp_path / "node-1")
    assert (raised.value.code, raised.value.target) == ("job.bad-archive", "node-1")
