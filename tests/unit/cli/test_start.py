from __future__ import annotations

import json
import subprocess
import sys

import pytest

HEAVY = ("pyVmomi", "pyVim", "pydantic", "jinja2", "paramiko", "tensorflow", "keyring", "tree_sitter", "statistics")
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


CUT = """
import sys

here = sys.argv.pop(1)

class Once:
    def find_spec(self, name, *_):
        if name == here:
            sys.meta_path.remove(self)
            raise KeyboardInterrupt

sys.meta_path.insert(0, Once())
from vsphere_ml.__main__ import main
main()
"""


@pytest.mark.parametrize("module", ["vsphere_ml.cli.app", "typer", "vsphere_ml.cli.exits", "vsphere_ml.config.load"])
def test_ctrl_c_during_an_import_is_told_as_any_other(module: str) -> None:
    command = [sys.executable, "-c", CUT, module, "check", "-o", "json"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 130
    assert [error["code"] for error in json.loads(ended.stdout)["errors"]] == ["interrupted"]
    assert ended.stderr.strip() == "error: interrupted"


def imported_by(arguments: list[str]) -> set[str]:
    text = subprocess.run(
        [sys.executable, "-c", PROBE, json.dumps(arguments)], capture_output=True, text=True, check=True
    ).stdout
    imported = set(json.loads(text.splitlines()[-1]))
    assert "typer" in imported
    return imported


ENTERED = """
import sys
from vsphere_ml.cli.guests import run
from vsphere_ml.cli.views.guests import command
from vsphere_ml.cli.views.progress import apply_progress
from vsphere_ml.cli.wiring import guest_wiring, site_wiring
from vsphere_ml.flows.guests import command
from vsphere_ml.ssh import guests
print(*sys.modules)
"""


def test_a_command_in_known_guests_imports_neither_vcenters_library_nor_templates() -> None:
    done = subprocess.run([sys.executable, "-c", ENTERED], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()).isdisjoint({"pyVmomi", "jinja2"})
