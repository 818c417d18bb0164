from __future__ import annotations

import json
import subprocess
import sys

import pytest

HEAVY = ("pyVmomi", "pyVim", "pydantic", "jinja2", "fabric", "tensorflow", "keyring", "tree_sitter")
PROBE = """
import json, sys
from vsphere_ml.cli import app
try:
    app.run(json.loads(sys.argv[1]))
finally:
    print("\\n" + json.dumps(sorted(name for name in sys.modules if "." not in name)))
"""


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], []], ids=" ".join)
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    assert imported_by(arguments).isdisjoint(HEAVY)


@pytest.mark.parametrize("arguments", [["lab", "--help"], ["provision", "--help"], ["nonsense"]], ids=" ".join)
def test_a_commands_help_imports_none_of_its_edges(arguments: list[str]) -> None:
    # typer 0.29 itself reads options given to a command with pydantic.
    assert imported_by(arguments).isdisjoint(set(HEAVY) - {"pydantic"})


def imported_by(arguments: list[str]) -> set[str]:
    told = subprocess.run(
        [sys.executable, "-c", PROBE, json.dumps(arguments)], capture_output=True, text=True, check=True
    ).stdout
    imported = set(json.loads(told.splitlines()[-1]))
    assert "typer" in imported
    return imported
