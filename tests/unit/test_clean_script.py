"""scripts/clean removes the lab's cache and what was made in the clone, by name and size, and nothing else."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.golden import Golden

ROOT = Path(__file__).parents[2]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts" / "clean", tmp_path / "scripts")
    for made in (".venv/bin", ".mypy_cache", "htmlcov", "vsphere_ml"):
        (tmp_path / made).mkdir(parents=True)
    vsml = tmp_path / ".venv" / "bin" / "vsml"
    vsml.write_text('#!/bin/sh\necho "vsml $*"\n')
    vsml.chmod(0o755)
    (tmp_path / ".coverage.host.1").touch()
    return tmp_path


def clean(clone: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([clone / "scripts" / "clean"], capture_output=True, text=True, check=True)


def test_the_cache_goes_first_and_each_thing_is_named_with_its_size(clone: Path, golden: Golden) -> None:
    texts = clean(clone).stdout.splitlines()
    golden(texts[0])
    removed = {line.removeprefix("removed ").partition(", ")[::2] for line in texts[1:]}
    assert {name for name, _ in removed} == {".venv", ".mypy_cache", "htmlcov", ".coverage.host.1"}
    assert all(size[:1].isdigit() for _, size in removed)
    assert {each.name for each in clone.iterdir()} == {"scripts", "vsphere_ml"}


def test_a_second_time_says_that_the_cache_was_left_alone(clone: Path, golden: Golden) -> None:
    clean(clone)
    again = clean(clone)
    assert again.stdout == ""
    golden(again.stderr)
