"""docs/reference/errors.md has one entry for each code that vsml can give, and for no other."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.golden import Golden

ROOT = Path(__file__).parents[2]
CODE = re.compile(r"[a-z]+(?:\.[a-z0-9]+(?:-[a-z0-9]+)*)?")
ENTRY = re.compile(r"^\| `([a-z0-9.-]+)` \|", re.MULTILINE)
TABLES = {"_Meaning"}  # calls whose first argument is a code


def texts(node: ast.AST | None) -> Iterator[str]:
    """Yield the codes among the constants of an expression."""
    for each in ast.walk(node) if node is not None else ():
        if isinstance(each, ast.Constant) and isinstance(each.value, str) and CODE.fullmatch(each.value):
            yield each.value


def codes(source: str) -> set[str]:
    """Return the codes a module gives: what stands after `code=`, also by way of a constant or a table."""
    tree = ast.parse(source)
    named = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == "code":
            names = [each.id for each in ast.walk(node.value) if isinstance(each, ast.Name)]
            found |= set(texts(node.value)).union(*(_values(named.get(name)) for name in names))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in TABLES:
            found |= set(texts(node.args[0]))
        elif isinstance(node, ast.FunctionDef):
            found |= _default(node)
    return found


def _values(node: ast.AST | None) -> set[str]:
    dictionary = next((each for each in ast.walk(node) if isinstance(each, ast.Dict)), None) if node else None
    return {code for value in dictionary.values for code in texts(value)} if dictionary else set(texts(node))


def _default(function: ast.FunctionDef) -> set[str]:
    """Return the default of a parameter `code`."""
    pairs = zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)
    return {code for argument, default in pairs if argument.arg == "code" for code in texts(default)}


def test_each_code_has_an_entry_and_each_entry_a_code(golden: Golden) -> None:
    given = {code for file in (ROOT / "vsphere_ml").rglob("*.py") for code in codes(file.read_text())}
    documented = ENTRY.findall((ROOT / "docs" / "reference" / "errors.md").read_text())
    assert len(documented) == len(set(documented))
    golden({"not documented": given - set(documented), "not in the code": set(documented) - given})


def test_codes_are_found_however_they_are_given() -> None:
    source = """
TABLE = {"a key": "one.a"}
def f(*, code: str = "two.b"): ...
raise E("x", code="three.c" if y else "four.d", hint="not.this")
raise E("x", code=TABLE["a key"])
_Meaning("five.e", "not.that")
"""
    assert codes(source) == {"one.a", "two.b", "three.c", "four.d", "five.e"}
