"""Commands in the container and the folder it shares, by a real shell. `docker` is a program of the test's own."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from vsphere_ml.core.nodes import container

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Return a PATH whose `docker exec NAME` runs the rest here."""
    docker = tmp_path / "docker"
    docker.write_text('#!/bin/sh\n[ "$1 $2" = "exec vsml-worker" ] || exit 1\nshift 2\nexec "$@"\n')
    docker.chmod(0o755)
    return f"{tmp_path}:{os.environ['PATH']}"


def told(command: str, path: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False, env={"PATH": path})


def test_a_command_reaches_the_container_as_it_is_written(path: str) -> None:
    command = 'for each in \'a  b\' "it\'s"; do echo "$each $0"; done | tr a-z A-Z'
    assert told(container.command_in_container(command), path).stdout == "A  B SH\nIT'S SH\n"


def test_a_folder_is_shared_when_both_see_the_same_one(path: str, tmp_path: Path) -> None:
    shared, other = tmp_path / "shared", tmp_path / "other"
    shared.mkdir()
    other.mkdir()
    ask = container.SHARES.replace(container.SHARED, str(shared))
    assert told(ask, path).returncode == 0
    # The container sees another folder there: its mount leads to one that was taken away.
    stale = ask.replace(f"exec {container.NAME} stat -c %d:%i {shared}", f"exec {container.NAME} stat -c %d:%i {other}")
    assert told(stale, path).returncode != 0
    shared.rmdir()
    assert told(ask, path).returncode != 0
