"""What a record says of where it was started from."""

from __future__ import annotations

import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from vsphere_ml.cli.bench import origin

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def kathmandu(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "<+0545>-5:45")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("kathmandu")
def test_the_time_zone_is_told_with_its_offset() -> None:
    assert origin.timezone() == "UTC+05:45 (+0545)"


def git(folder: Path, *words: str) -> str:
    completed = subprocess.run(
        ["git", "-C", folder, "-c", "user.name=a", "-c", "user.email=a@example.com", *words],
        capture_output=True,
        text=True,
        check=True,
    )
    return completed.stdout.strip()


def test_the_commit_is_that_of_the_cluster_files_folder_and_tells_of_changes(tmp_path: Path) -> None:
    assert origin.commit(tmp_path) == ""
    git(tmp_path, "init", "-q")
    file = tmp_path / "cluster.toml"
    file.write_text("a")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "one")
    head = git(tmp_path, "rev-parse", "HEAD")
    assert origin.commit(tmp_path) == head
    file.write_text("b")
    assert origin.commit(tmp_path) == f"{head}, with changes"
