"""Completion as a shell does it: by the script that vsml gives bash, in a bash."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
COMPLETE = """\
eval "$(_VSML_COMPLETE=source_bash vsml)"
complete_after() {
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
    _vsml_completion vsml
    printf '%s\\n' "${COMPREPLY[*]}"
}
"""
WORDS = {
    "a group with a default command": ("vsml bench ''", {"run", "gate", "selftest"}),
    "a begun command": ("vsml bench r", {"regimes", "report", "run"}),
    "an option of the command that was left out": ("vsml bench --work", {"--workload"}),
    "a value of such an option": ("vsml bench --workload t", {"train"}),
    "an option after a file": ("vsml bench cluster.toml --repeats-c", {"--repeats-ci-target"}),
    "a command of the other such group": ("vsml rules ''", {"list", "why"}),
    "a group in a group": ("vsml bench baseline ''", {"make"}),
}


@pytest.fixture(scope="module")
def completed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """Return what bash offers after each of the words, asked in one shell."""
    folder = tmp_path_factory.mktemp("completion")
    program = folder / "vsml"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m vsphere_ml "$@"\n')
    program.chmod(0o755)
    script = COMPLETE + "".join(f"complete_after {words}\n" for words, _ in WORDS.values())
    env = os.environ | {
        "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(Path(__file__).parents[3]),
    }
    process = subprocess.run(["bash", "-c", script], env=env, capture_output=True, text=True, check=True, cwd=folder)
    return dict(zip(WORDS, (set(line.split()) for line in process.stdout.splitlines()), strict=True))


@pytest.mark.parametrize("case", WORDS)
def test_bash_completes(case: str, completed: dict[str, set[str]]) -> None:
    assert completed[case] >= WORDS[case][1]


def test_nothing_is_offered_that_does_not_begin_so(completed: dict[str, set[str]]) -> None:
    assert {"regimes", "report", "run"} == next(found for after, found in completed.items() if "begun" in after)
