"""A script's text with places of its syntax tree, and edits of it. The tree counts columns in UTF-8 bytes."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from typing import TYPE_CHECKING

from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable

    from vsphere_ml.bench.porting.steps import PortingStep

_LINE_END = re.compile(rb"\r\n|\r|\n")
_PARENTHESES = re.compile(rb"(\s*\))*")
_COMMENT = re.compile(rb"#[^\r\n]*")


class CannotRewrite(Exception):  # noqa: N818 - reads as what it says
    """Something of a step is in a form that is not edited: why, and in which line."""

    def __init__(self, line: int | None, message: str, *, code: str) -> None:
        super().__init__(message)
        self.code, self.line, self.message = code, line, message


def need(condition: object, node: ast.expr | ast.stmt | None, message: str, *, code: str) -> None:
    """Raise CannotRewrite unless something holds."""
    if not condition:
        raise CannotRewrite(node.lineno if node is not None else None, message, code=code)


@dataclass(frozen=True, slots=True, kw_only=True)
class TextEdit:
    """Bytes of the text to replace, none of them where something is inserted, and the steps that it is for."""

    steps: tuple[PortingStep, ...]
    start: int
    end: int
    text: str


class SourceText:
    """A script's text as UTF-8, whatever it is encoded in, with what its lines begin at."""

    def __init__(self, content: bytes) -> None:
        self.encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
        self.data = content.decode(self.encoding).encode()
        ends = list(_LINE_END.finditer(self.data))
        self.starts = [0, *(each.end() for each in ends)]
        self.newline = ends[0].group().decode() if ends else "\n"

    def start(self, node: ast.expr | ast.stmt) -> int:
        """Return where a node begins."""
        return self.starts[node.lineno - 1] + node.col_offset

    def end(self, node: ast.expr | ast.stmt) -> int:
        """Return where a node ends."""
        return self.starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)

    def text(self, node: ast.expr | ast.stmt) -> str:
        """Return a node's own text."""
        return self.data[self.start(node) : self.end(node)].decode()

    def indentation(self, statement: ast.stmt) -> str:
        """Return the blanks before a statement; raises CannotRewrite when something else is before it on its line."""
        before = self.data[self.starts[statement.lineno - 1] : self.start(statement)].decode()
        if before.strip(" \t\f\ufeff"):
            raise CannotRewrite(statement.lineno, "several statements are on this line", code="port.layout")
        return before

    def next_line(self, statement: ast.stmt) -> int:
        """Return where the line after a statement begins; errors as `indentation`."""
        line = statement.end_lineno or statement.lineno
        after = self.starts[line] if line < len(self.starts) else len(self.data)
        left = self.data[self.end(statement) : after].strip()
        if left and not left.startswith(b"#"):
            raise CannotRewrite(statement.lineno, "several statements are on this line", code="port.layout")
        return after

    def unit(self, tree: ast.Module) -> str:
        """Return what the script indents a block by."""
        for node in ast.walk(tree):
            body = getattr(node, "body", None)
            if isinstance(node, ast.stmt) and isinstance(body, list) and body[0].lineno > node.lineno:
                inner, outer = self._blanks(body[0]), self._blanks(node)
                if inner.startswith(outer) and len(inner) > len(outer):
                    return inner[len(outer) :]
        return "    "

    def _blanks(self, statement: ast.stmt) -> str:
        line = self.data[self.starts[statement.lineno - 1] :]
        return line[: len(line) - len(line.lstrip(b" \t"))].decode()

    def argument_place(self, call: ast.Call) -> tuple[int, str, str]:
        """Return where another argument goes in a call, with what goes before and after it."""
        given = [*call.args, *(each.value for each in call.keywords)]
        if not given:
            return self.end(call) - 1, "", ""
        last = max(given, key=self.end)
        after = self.data[self.end(last) : self.end(call) - 1]
        parentheses = _PARENTHESES.match(after)
        comma = _COMMENT.sub(lambda found: b" " * len(found.group()), after).find(b",")
        if comma < 0:
            return self.end(last) + (parentheses.end() if parentheses else 0), ", ", ""
        line_end = _LINE_END.search(after, comma)
        if line_end:
            indentation = " " * (self.start(last) - self.starts[last.lineno - 1] - self._keyword_width(call, last))
            return self.end(last) + line_end.start(), f"\n{indentation}", ","
        return self.end(last) + comma + 1, " ", ","

    def _keyword_width(self, call: ast.Call, value: ast.expr) -> int:
        return next((value.col_offset - each.col_offset for each in call.keywords if each.value is value), 0)

    def edit(self, edits: Iterable[TextEdit]) -> bytes:
        """Return the text with all edits made, in the encoding it came in. Edits of one place come in their order."""
        parts, at = [], 0
        for each in sorted(edits, key=lambda each: (each.start, each.end)):
            parts += [self.data[at : each.start], each.text.replace("\n", self.newline).encode()]
            at = max(at, each.end)
        return b"".join([*parts, self.data[at:]]).decode().encode(self.encoding)
