"""The script that starts a job in its first guest, run here as it runs there."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.bench.jobs import job
from tests.waiting import EXIT_TIMEOUT_S, until
from vsphere_ml.bench.launch import remote_job
from vsphere_ml.bench.launch.launchers import Launch
from vsphere_ml.core.errors import BenchError
from vsphere_ml.core.model.guest import CommandAnswer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.golden import Golden

FORGOTTEN_S = remote_job.FORGOTTEN_MIN * 60 + 61  # find counts whole minutes


class Here:
    """A shell on this machine that only keeps what is written."""

    name = "here"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.script = self.command = ""

    def write(self, _path: str, text: str, **_how: object) -> None:
        self.script = text.replace(job().folder, str(self.folder))

    def run(self, command: str, **_how: object) -> CommandAnswer:
        """Start nothing: the test does."""
        self.command = command.replace(job().folder, str(self.folder))
        return CommandAnswer(0, "4711\n")


def started(folder: Path, patch: pytest.MonkeyPatch, *command: str) -> subprocess.Popen[bytes]:
    patch.setattr(remote_job, "POLL_S", 1)
    here = Here(folder)
    remote_job.start(here, job(), Launch(command=command, variables={}, files={}))  # type: ignore[arg-type]
    (folder / "job.sh").write_text(here.script)
    return subprocess.Popen(["sh", folder / "job.sh"], start_new_session=True)


def there(file: Path) -> None:
    until(file.exists, f"{file.name} is not there")


def test_a_job_leaves_the_status_of_its_launcher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started(tmp_path, monkeypatch, "sh", "-c", "echo out; echo err >&2; exit 7").wait(EXIT_TIMEOUT_S)
    assert (tmp_path / "rc").read_text() == "7\n"
    assert ((tmp_path / "job.out").read_text(), (tmp_path / "job.err").read_text()) == ("out\n", "err\n")


def test_a_job_that_nobody_looks_after_ends_itself_and_what_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = tmp_path / "begun"
    process = started(tmp_path, monkeypatch, "sh", "-c", f"echo $$ >{begun}; exec sleep 900")
    there(begun)
    (tmp_path / "alive").touch()
    long_ago = time.time() - FORGOTTEN_S
    os.utime(tmp_path / "alive", (long_ago, long_ago))
    process.wait(EXIT_TIMEOUT_S)
    assert int((tmp_path / "rc").read_text()) != 0
    with pytest.raises(ProcessLookupError):
        os.kill(int(begun.read_text()), 0)


def test_a_job_that_is_looked_after_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    process = started(tmp_path, monkeypatch, "sh", "-c", "sleep 4; echo whole")
    there(tmp_path / "alive")
    nearly = time.time() - (remote_job.FORGOTTEN_MIN - 1) * 60
    os.utime(tmp_path / "alive", (nearly, nearly))
    process.wait(EXIT_TIMEOUT_S)
    assert (tmp_path / "rc").read_text() == "0\n"
    assert (tmp_path / "job.out").read_text() == "whole\n"


def begun(folder: Path, *command: str, **variables: str) -> int:
    """Start a job as a guest's root does, without changing the user; return the pid that is watched."""
    here = Here(folder)
    (folder / "job.sh").write_text("")
    remote_job.start(here, job(), Launch(command=command, variables=variables, files={}))  # type: ignore[arg-type]
    (folder / "job.sh").write_text(here.script)
    text = here.command.replace("runuser -u root -- ", "")
    message = subprocess.run(["sh", "-c", text], capture_output=True, text=True, check=True).stdout
    return int(message)


def test_what_is_new_of_a_job_comes_with_its_status(tmp_path: Path) -> None:
    pid = begun(tmp_path, "/bin/sh", "-c", f"echo line >{tmp_path}/rank-0.jsonl; exit 3")
    seen = remote_job.peek(Asked(tmp_path), job(), pid, 0, EXIT_TIMEOUT_S)
    assert (seen.status, seen.gone, seen.text) == (3, False, "line\n")


def test_what_a_job_printed_comes_from_the_byte_on_that_is_not_known(tmp_path: Path) -> None:
    (tmp_path / "job.out").write_bytes(b"first\n\xff\xfe second\n")
    (tmp_path / "job.err").write_bytes(b"x" * (remote_job.SHOWN + 7))
    (tmp_path / "rc").write_text("0\n")
    asked = {"job.out": 6, "job.err": 0, "not-there": 0}
    seen = remote_job.peek(Asked(tmp_path), job(), os.getpid(), 0, 0.5, printed=asked)
    assert seen.printed == {
        "job.out": remote_job.OutputPiece(start=6, data=b"\xff\xfe second\n"),
        "job.err": remote_job.OutputPiece(start=7, data=b"x" * remote_job.SHOWN),
    }


def test_variables_of_ranks_take_no_program_from_the_jobs_script(tmp_path: Path) -> None:
    pid = begun(tmp_path, "/bin/sh", "-c", f"echo $PATH $MINE >{tmp_path}/rank-0.jsonl; exit 3", PATH="/x", MINE="a b")
    seen = remote_job.peek(Asked(tmp_path), job(), pid, 0, EXIT_TIMEOUT_S)
    assert (seen.status, seen.text) == (3, "/x a b\n")


def processes_of(folder: Path) -> list[str]:
    """Return the processes that run the job's script."""
    script = str(folder / "job.sh").encode()
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if script in each.read_bytes().split(b"\0"):
                found.append(each.parent.name)
    return found


def test_who_watches_a_job_ends_with_its_script_and_ends_no_process_of_its_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_job, "POLL_S", 0.1)
    pid = begun(tmp_path, "/bin/sh", "-c", f"echo $$ >{tmp_path}/begun; exec sleep 60")
    until(lambda: (tmp_path / "begun").exists() and (tmp_path / "begun").read_text(), "it does not begin")
    assert len(processes_of(tmp_path)) > 1
    os.kill(pid, signal.SIGKILL)
    os.kill(int((tmp_path / "begun").read_text()), signal.SIGKILL)
    until(lambda: not processes_of(tmp_path), "the watch goes on")


def test_a_job_whose_script_was_killed_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_job, "POLL_S", 0.1)
    pid = begun(tmp_path, "/bin/sh", "-c", f"echo $$ >{tmp_path}/begun; exec sleep 60")
    until(lambda: (tmp_path / "begun").exists() and (tmp_path / "begun").read_text(), "it does not begin")
    assert remote_job.peek(Asked(tmp_path), job(), pid, 0, 0.5) == remote_job.JobProgress(status=None, text="")
    os.kill(pid, signal.SIGKILL)
    try:
        assert remote_job.peek(Asked(tmp_path), job(), pid, 0, EXIT_TIMEOUT_S) == remote_job.JobProgress(
            status=None, text="", gone=True
        )
    finally:
        os.kill(int((tmp_path / "begun").read_text()), signal.SIGKILL)


def test_a_job_that_cannot_write_its_status_is_gone(tmp_path: Path) -> None:
    (tmp_path / "rc.new").mkdir()
    (tmp_path / "rc").touch()  # what mv makes of a status that found no room
    pid = begun(tmp_path, "/bin/sh", "-c", "exit 0")
    guest: Any = Asked(tmp_path)
    until(lambda: remote_job.peek(guest, job(), pid, 0, 0.5).gone, "its script goes on")


def test_a_guest_that_lost_the_jobs_folder_has_no_job(tmp_path: Path) -> None:
    assert remote_job.peek(Asked(tmp_path / "nowhere"), job(), os.getpid(), 0, 0.5).gone


def test_a_full_file_system_is_a_trouble(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, golden: Golden) -> None:
    (tmp_path / "job.sh").touch()
    (tmp_path / "df").write_text(
        "#!/bin/sh\necho Filesystem 1024-blocks Used Available Capacity Mounted on\necho /dev/sda 100 97 3 97% /var\n"
    )
    (tmp_path / "dmesg").write_text(
        "#!/bin/sh\necho '[    0.000001] Out of memory: Killed process 1 (old)'\n"
        "echo '[99999999.5] Out of memory: Killed process 7 (python)'\n"
    )
    for name in ("df", "dmesg"):
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    golden(remote_job.reported_faults(Asked(tmp_path), job()))


def test_a_start_that_tells_no_pid_is_an_error(tmp_path: Path) -> None:
    here: Any = Here(tmp_path)
    here.run = lambda _command, **_how: CommandAnswer(0, "no such user\n")
    with pytest.raises(BenchError) as raised:
        remote_job.start(here, job(), Launch(command=("true",), variables={}, files={}))
    assert (raised.value.code, raised.value.target) == ("bench.not-started", "here")


class Asked:
    """A guest whose job folder is one of this machine."""

    name = "here"

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def ask(self, probes: Mapping[str, str]) -> dict[str, CommandAnswer]:
        """Return what each command prints here."""
        answers = {name: text.replace(job().folder, str(self.folder)) for name, text in probes.items()}
        ran = {
            name: subprocess.run(["sh", "-c", text], capture_output=True, check=False) for name, text in answers.items()
        }
        return {name: CommandAnswer(ended.returncode, ended.stdout.decode(), "") for name, ended in ran.items()}


def test_of_a_long_log_both_ends_are_kept(tmp_path: Path, golden: Golden) -> None:
    guest: Any = Asked(tmp_path)
    (tmp_path / "job.out").write_text("first\n" + "x" * remote_job.CHUNK + "\nlast\n")
    (tmp_path / "job.err").write_text("stderr\n")
    log = remote_job.logs(guest, job())
    assert log.startswith("first\n")
    assert log.endswith("\nlast\nstderr\n")
    golden(line for line in log.splitlines() if set(line) != {"x"})
    assert len(log) < remote_job.CHUNK


def test_a_short_log_is_kept_whole_and_one_that_is_not_there_is_empty(tmp_path: Path) -> None:
    guest: Any = Asked(tmp_path)
    assert remote_job.logs(guest, job()) == ""
    (tmp_path / "job.out").write_text("out\n")
    assert remote_job.logs(guest, job()) == "out\n"
