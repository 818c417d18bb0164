"""Which programs the lab's code and the repository's scripts run on the machine, read off their sources."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# Functions whose first word, or the first word of whose first list, is a program; names of lists that become commands.
RUNNERS = {"run", "attempt", "spawn", "Popen", "_run"}
COMMANDS = {"command", "machine", "inside", "unshare", "namespaces", "tc", "way"}
# Shell scripts that run on the machine; of init.sh what comes before the guest's root is entered.
SCRIPTS = ("scripts/demo", "scripts/setup", "scripts/machine-packages", "scripts/prepare")
GUESTS = "vsphere_ml/lab/guests"
BUILTIN = {
    *("[", ":", ".", "break", "if", "then", "elif", "else", "fi", "for", "in", "do", "done", "while", "until", "case"),
    *("esac", "eval", "exec", "exit", "export", "set", "shift", "trap", "unset", "cd", "echo", "command", "read"),
    *("return", "local", "wait"),
}
OURS = {"vsml", "python", "python3", "git", "make"}  # what the set-up makes, and what brought the clone here
_WORD = re.compile(r"^[a-z][a-z0-9+._-]*$")
_COMMAND = re.compile(r"(?:^|\||&&|;|\$\(|\{ |\bthen |\bdo |\belse |\bexec |! )\s*([a-z][a-z0-9+._-]*)(?=\s|$|\))")


def run_by_the_code(root: Path) -> set[str]:
    """Return the programs' names."""
    found = {name for file in (root / "vsphere_ml/lab").rglob("*.py") for name in _of_python(file)}
    for script in SCRIPTS:
        found |= set(_of_shell((root / script).read_text()))
    for name in ("hub.sh", "machine.sh", "init.sh"):
        found |= set(_of_shell((root / GUESTS / name).read_text().partition("pivot_root")[0]))
    return found - BUILTIN - OURS


def _of_python(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Call) and _name(node.func) in RUNNERS and node.args:
            yield from _first(node.args[0])
        if isinstance(node, ast.Assign) and any(_name(each) in COMMANDS for each in node.targets):
            yield from _first(node.value)


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _first(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.List | ast.Tuple) and node.elts:
        node = node.elts[0]
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and _WORD.match(node.value):
        yield node.value


def _of_shell(text: str) -> Iterator[str]:
    functions = set(re.findall(r"^(\w+)\(\)", text, re.MULTILINE))
    for line in text.splitlines():
        code = re.sub(r"'[^']*'|\"[^\"$]*\"", "''", line.split(" #")[0])
        if not code.lstrip().startswith("#"):
            yield from (name for name in _COMMAND.findall(code) if name not in functions)
