"""The script that starts a job in its first guest, run here as it runs there."""

from __future__ import annotations

import os
import subprocess
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.bench.jobs import job
from tests.waiting import PATIENCE_S, until
from vsphere_ml.bench import running
from vsphere_ml.bench.launchers import Launch
from vsphere_ml.core.guest import Answer

if TYPE_CHECKING:
    from pathlib import Path

FORGOTTEN_S = running.FORGOTTEN_MIN * 60 + 61  # find counts whole minutes


class Here:
    """A shell on this machine that only keeps what is written."""

    name = "here"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.script = ""

    def write(self, _path: str, text: str, **_how: object) -> None:
        self.script = text.replace(job().folder, str(self.folder))

    def run(self, _command: str, **_how: object) -> None:
        """Start nothing: the test does."""


def started(folder: Path, patch: pytest.MonkeyPatch, *command: str) -> subprocess.Popen[bytes]:
    patch.setattr(running, "LOOK_S", 1)
    here = Here(folder)
    running.start(here, job(), Launch(command=command, variables={}, files={}))  # type: ignore[arg-type]
    (folder / "job.sh").write_text(here.script)
    return subprocess.Popen(["sh", folder / "job.sh"], start_new_session=True)


def there(file: Path) -> None:
    until(file.exists, f"{file.name} is not there")


def test_a_job_leaves_the_status_of_its_launcher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started(tmp_path, monkeypatch, "sh", "-c", "echo out; echo err >&2; exit 7").wait(PATIENCE_S)
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
    process.wait(PATIENCE_S)
    assert int((tmp_path / "rc").read_text()) != 0
    with pytest.raises(ProcessLookupError):
        os.kill(int(begun.read_text()), 0)


def test_a_job_that_is_looked_after_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    process = started(tmp_path, monkeypatch, "sh", "-c", "sleep 4; echo whole")
    there(tmp_path / "alive")
    nearly = time.time() - (running.FORGOTTEN_MIN - 1) * 60
    os.utime(tmp_path / "alive", (nearly, nearly))
    process.wait(PATIENCE_S)
    assert (tmp_path / "rc").read_text() == "0\n"
    assert (tmp_path / "job.out").read_text() == "whole\n"


class Asked:
    """A guest whose job folder is one of this machine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def ask(self, probes: dict[str, str]) -> dict[str, Answer]:
        """Return what each command prints here."""
        told = {name: text.replace(job().folder, str(self.folder)) for name, text in probes.items()}
        ran = {
            name: subprocess.run(["sh", "-c", text], capture_output=True, check=False) for name, text in told.items()
        }
        return {name: Answer(ended.returncode, ended.stdout.decode(), "") for name, ended in ran.items()}


def test_of_a_long_log_both_ends_are_kept(tmp_path: Path) -> None:
    guest: Any = Asked(tmp_path)
    (tmp_path / "job.out").write_text("first\n" + "x" * running.CHUNK + "\nlast\n")
    (tmp_path / "job.err").write_text("of stderr\n")
    log = running.logs(guest, job())
    assert log.startswith("first\n")
    assert log.endswith("\nlast\nof stderr\n")
    assert "\n[vsml left out the middle of job.out]\n" in log
    assert len(log) < running.CHUNK


def test_a_short_log_is_kept_whole_and_one_that_is_not_there_is_empty(tmp_path: Path) -> None:
    guest: Any = Asked(tmp_path)
    assert running.logs(guest, job()) == ""
    (tmp_path / "job.out").write_text("out\n")
    assert running.logs(guest, job()) == "out\n"
