"""Collects the edits of a script: statements put in, arguments added, lines indented; and what is left to the user."""

from __future__ import annotations

import ast
from collections import Counter
from dataclasses import field
from typing import TYPE_CHECKING

from vsphere_ml.bench.porting.rewrite.source_text import TextEdit
from vsphere_ml.bench.porting.script import HVD
from vsphere_ml.core.diagnostics import Diagnostic
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from vsphere_ml.bench.porting.rewrite.source_text import SourceText
    from vsphere_ml.bench.porting.script import Script
    from vsphere_ml.bench.porting.steps import PortingStep

_LOOPS = (ast.For, ast.While)


@dataclass(slots=True)
class ScriptEditor:
    """One script, and what is collected for it."""

    file: str
    script: Script
    source: SourceText
    keras: int
    edits: list[TextEdit] = field(default_factory=list)
    left: list[tuple[PortingStep, Diagnostic]] = field(default_factory=list)

    @property
    def hvd(self) -> str:
        """Return what the script calls Horovod, or is to call it."""
        named = (local for local, full in self.script.imports.items() if full == HVD)
        return next(named, HVD)

    @property
    def size(self) -> str:
        return f"{self.hvd}.size()"

    @property
    def rank(self) -> str:
        return f"{self.hvd}.rank()"

    @property
    def is_first(self) -> str:
        return f"{self.rank} == 0"

    def leave(self, step: PortingStep, line: int | None, message: str, *, code: str) -> None:
        """Note what is left to the user."""
        problem = Diagnostic(code=code, target=f"step {step.number}", file=self.file, line=line, message=message)
        self.left.append((step, problem))

    def insert(self, at: int, text: str, *steps: PortingStep) -> None:
        """Put text in at a place."""
        self.edits.append(TextEdit(steps=steps, start=at, end=at, text=text))

    def replace(self, node: ast.expr, text: str, *steps: PortingStep) -> None:
        """Put text in an expression's place."""
        self.replace_range(self.source.start(node), self.source.end(node), text, *steps)

    def replace_range(self, start: int, end: int, text: str, *steps: PortingStep) -> None:
        """Put text in the place of what stands between two places."""
        self.edits.append(TextEdit(steps=steps, start=start, end=end, text=text))

    def surround(self, node: ast.expr, before: str, after: str, *steps: PortingStep) -> None:
        """Put text before and after an expression."""
        self.insert(self.source.start(node), before, *steps)
        self.insert(self.source.end(node), after, *steps)

    def insert_before(self, statement: ast.stmt, lines: Sequence[str], *steps: PortingStep) -> None:
        """Put statements in before one."""
        indentation = self.source.indentation(statement)
        text = "".join(f"{indentation}{each}\n" for each in lines)
        self.insert(self.source.starts[statement.lineno - 1], text, *steps)

    def insert_after(self, statement: ast.stmt, lines: Sequence[str], *steps: PortingStep) -> None:
        """Put statements in after one."""
        indentation = self.source.indentation(statement)
        at = self.source.next_line(statement)
        text = "".join(f"{indentation}{each}".rstrip() + "\n" for each in lines)
        ended = self.source.data[:at].endswith((b"\n", b"\r"))
        self.insert(at, text if ended else f"\n{text}".removesuffix("\n"), *steps)

    def insert_argument(self, call: ast.Call, text: str, *steps: PortingStep) -> None:
        """Add an argument to a call, after those that are there."""
        at, before, after = self.source.argument_place(call)
        self.insert(at, f"{before}{text}{after}", *steps)

    def indent(self, statements: Sequence[ast.stmt], header: str, *steps: PortingStep) -> None:
        """Put neighbouring statements into a block of their own."""
        unit = self.indentation_unit
        first, last = statements[0], statements[-1]
        for each in statements:
            self.source.indentation(each)
            self.source.next_line(each)
        self.insert_before(first, [header], *steps)
        fixed = _lines_of_texts(statements)
        for number in range(first.lineno, (last.end_lineno or last.lineno) + 1):
            at = self.source.starts[number - 1]
            if number not in fixed and self.source.data[at : at + 1] not in {b"\n", b"\r", b""}:
                self.insert(at, unit, *steps)

    @property
    def indentation_unit(self) -> str:
        return self.source.unit(self.script.tree)

    def fresh(self, name: str) -> str:
        """Return a name that the script does not use yet."""
        names = _names(self.script.tree)
        return name if name not in names else next(each for each in _other_names(name) if each not in names)

    def statement(self, node: ast.AST) -> ast.stmt:
        """Return the statement that a node is in."""
        above = (node, *(parent for parent, _ in self.script.above(node)))
        return next(each for each in above if isinstance(each, ast.stmt))

    def function(self, node: ast.AST) -> ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | None:
        """Return the function that a node is in; None at the top level."""
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
        return next((parent for parent, _ in self.script.above(node) if isinstance(parent, kinds)), None)

    def loops(self, node: ast.AST) -> list[ast.For | ast.While]:
        """Return the loops around a node in its function, the innermost first."""
        function, found = self.function(node), list[ast.For | ast.While]()
        for parent, _ in self.script.above(node):
            if parent is function:
                break
            if isinstance(parent, _LOOPS):
                found.append(parent)
        return found

    def block(self, statement: ast.stmt) -> list[ast.stmt]:
        """Return the statements that one stands among."""
        parent = self.script.parents[statement]
        bodies = (getattr(parent, name, None) for name in ("body", "orelse", "finalbody"))
        return next(each for each in bodies if isinstance(each, list) and statement in each)

    def resolve(self, node: ast.expr, far: int = 0) -> list[ast.expr]:
        """Return what a name can be, by assignments and arguments; the expression itself when it is no name."""
        values = self.script.values_of(node)
        if not values or far > 5:  # noqa: PLR2004 - names of names of names
            return [node]
        return [found for each in values if each is not node for found in self.resolve(each, far + 1)]


def _lines_of_texts(statements: Iterable[ast.stmt]) -> set[int]:
    """Return the lines that begin inside a text of several lines: blanks there would be part of it."""
    texts = (
        each
        for statement in statements
        for each in ast.walk(statement)
        if isinstance(each, ast.JoinedStr) or (isinstance(each, ast.Constant) and isinstance(each.value, str | bytes))
    )
    return {line for each in texts for line in range(each.lineno + 1, (each.end_lineno or each.lineno) + 1)}


def _names(tree: ast.Module) -> set[str]:
    found = Counter[str]()
    for each in ast.walk(tree):
        for field_name in ("id", "name", "arg", "asname"):
            value = getattr(each, field_name, None)
            if isinstance(value, str):
                found[value.partition(".")[0]] += 1
    return set(found)


def _other_names(name: str) -> Iterable[str]:
    yield f"hvd_{name}"
    yield from (f"hvd_{name}_{number}" for number in range(2, 10_000))
