"""The one list of what the machine must have, and the script that goes by it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.programs import run_by_the_code
from vsphere_ml.lab import machine_packages

ROOT = Path(__file__).parents[3]
# Of packages that every Debian has (coreutils, dash, grep, sed, tar, util-linux), and apt itself.
ESSENTIAL = {
    *(
        "cat",
        "chmod",
        "cp",
        "cut",
        "date",
        "dirname",
        "env",
        "grep",
        "head",
        "id",
        "kill",
        "ln",
        "ls",
        "mkdir",
        "mknod",
    ),
    *("mktemp", "mv", "nice", "printf", "readlink", "renice", "rm", "sed", "setsid", "sh", "sha256sum", "sleep"),
    *("sort", "tail", "tar", "touch", "tr", "true", "uname", "umount", "chroot", "basename", "mountpoint"),
}


def test_every_program_that_the_lab_runs_on_the_machine_is_listed() -> None:
    found = run_by_the_code(ROOT)
    assert {"ip", "unshare", "mmdebstrap", "dpkg-deb", "nsenter"} <= found
    listed = {need.path for need in machine_packages.all_needs()}
    assert found - listed - ESSENTIAL == set()


def test_what_is_missing_is_named_by_package_for_each_purpose(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_packages, "SEARCH", str(tmp_path))
    assert "mmdebstrap" in machine_packages.missing_packages("guests")
    assert "g++" not in machine_packages.missing_packages("guests")
    assert {"g++", "make", "cmake"} <= {*machine_packages.missing_packages("training")}


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """Return a copy of the script with a list of its own: one program that is there, one that nobody has, one file."""
    listed = tmp_path / "vsphere_ml/lab/packages.txt"
    listed.parent.mkdir(parents=True)
    listed.write_text("one sh dash\none no-such-program nosuch\none /no/such*/file nofile\ntwo no-such-either other\n")
    copied = tmp_path / "scripts/machine-packages"
    copied.parent.mkdir()
    shutil.copy(ROOT / "scripts/machine-packages", copied)
    return copied


def typed(script: Path, *words: str, uid: int) -> tuple[int, str, str]:
    """Run the script as that user, with an apt-get that keeps what it is asked; return status, stderr and that."""
    programs = script.parent / "programs"
    programs.mkdir(exist_ok=True)
    asked = script.parent / "asked"
    for name, text in {"apt-get": f'echo "$@" >>{asked}', "id": f"echo {uid}"}.items():
        (programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (programs / name).chmod(0o755)
    env = {"PATH": f"{programs}:{os.defpath}"}
    done = subprocess.run([script, *words], env=env, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr, asked.read_text() if asked.exists() else ""


def test_root_gets_what_is_missing_installed_and_nothing_else(script: Path) -> None:
    status, _, asked = typed(script, "one", uid=0)
    assert status == 0
    update, install = asked.splitlines()
    assert update.startswith("update")
    assert install.split()[-2:] == ["nofile", "nosuch"]
    assert "dash" not in install.split()


def test_anybody_else_is_told_in_one_line_what_to_type(script: Path) -> None:
    status, text, asked = typed(script, "one", "two", uid=1000)
    assert (status, asked) == (2, "")
    assert text.count("\n") == 1
    assert text.split()[-3:] == ["nofile", "nosuch", "other"]


def test_a_check_installs_nothing(script: Path) -> None:
    status, _, asked = typed(script, "--check", "one", uid=0)
    assert status == 0
    assert all(line.startswith("update") or "--simulate" in line for line in asked.splitlines())


def test_nothing_missing_is_nothing_done(script: Path) -> None:
    assert typed(script, "three", uid=0) == (0, "", "")
