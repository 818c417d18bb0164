"""The list of packages on a bare root file system: afterwards every program that the code runs is there."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from benchmarks import first_hour
from tests.integration.guests import needed
from tests.programs import run_by_the_code

ROOT = Path(__file__).parents[2]
PURPOSES = "setup guests training access tests"

pytestmark = [pytest.mark.long, needed]


def in_root(root: Path, command: str) -> list[str]:
    """Return the words that a shell in that root printed."""
    entered = [
        "unshare",
        "--mount",
        "--pid",
        "--fork",
        "--kill-child",
        "sh",
        "-c",
        first_hour.ENTER,
        "enter",
        str(root),
    ]
    done = subprocess.run(
        [*entered, first_hour.CERTIFICATES, command],
        env=first_hour.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_after_the_list_is_installed_every_program_that_the_code_runs_is_there() -> None:
    wanted = sorted(run_by_the_code(ROOT))
    read = f"for each in {' '.join(wanted)}; do command -v $each >/dev/null || echo $each; done"
    with first_hour.bare_root() as root:
        assert "mmdebstrap" in in_root(root, read)  # it is bare
        in_root(root, f"scripts/machine-packages {PURPOSES}")
        assert in_root(root, read) == []
        assert in_root(root, f"scripts/machine-packages {PURPOSES}") == []  # nothing is left to install
