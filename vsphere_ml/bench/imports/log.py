"""A log as its readers see it: lines without prefixes, NCCL's own lines apart from the others, or one JSON document.

It is read as a stream. What is kept of it is bounded as a whole, so that a log of 256 MiB takes no more memory than one
of 64 MiB; what does not fit is refused and never cut.
"""

from __future__ import annotations

import codecs
import hashlib
import re
from dataclasses import field
from typing import TYPE_CHECKING, Any

from vsphere_ml.bench.imports.prefixes import strip_prefixes, without_columns
from vsphere_ml.bench.imports.wrapped import find_wrapped_text
from vsphere_ml.core import json_text
from vsphere_ml.core.errors import ConfigError
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

LARGEST_TEXT = 64 << 20  # bytes of memory for lines that are not NCCL's
LARGEST_NCCL = 32 << 20  # and for those that are
LARGEST_JSON = 12 << 20  # characters; the values of a document can take 24 times as much
_A_LINE = 100  # bytes that a line takes beside its characters
_NCCL = re.compile(r"\bNCCL (?:INFO|WARN|TRACE|VERSION)\b|\] (?:INFO|WARN) (?:NET|Ring|Channel|Tree|Using|comm)\b")
# NCCL_DEBUG_SUBSYS=COLL and TUNING: a line for each call of each rank, which has nothing of channels.
_CALL = re.compile(r"opCount|Bytes -> Algo")
_ROW = re.compile(r"\s*\d+\s+\d+\s+[a-z]")
_BREAK = re.compile(r"[\r\n]+")
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """What a file holds."""

    name: str
    digest: str  # SHA-256 of its bytes
    lines: tuple[str, ...]
    nccl: str  # the lines that NCCL logged itself, each once
    document: Any = None  # of a file that is JSON


def _unwrap(line: str) -> Sequence[str]:
    """Return the lines that one line holds as JSON, with prefixes before it or without; itself where it holds none."""
    if not line.rstrip().endswith("}"):  # nearly all: they are not searched for prefixes twice
        return (line,)
    text = find_wrapped_text(line) or find_wrapped_text(strip_prefixes(line).strip())
    return (line,) if text is None else _BREAK.split(text)


@dataclass(slots=True)
class _Excerpt:
    """The lines kept so far, and what they weigh."""

    name: str
    count: int = 0  # of all lines
    numbered: bool = True  # each of them begins with its number
    lines: list[str] = field(default_factory=list)
    nccl: dict[str, None] = field(default_factory=dict)
    text_bytes: int = 0
    nccl_bytes: int = 0

    def add(self, line: str) -> None:
        self.count += 1
        self.numbered = self.numbered and line.startswith(f"{self.count}:")  # grep -n
        line = line.removeprefix(f"{self.count}:") if self.numbered else line
        for each in _unwrap(line):
            self._add_line(each)

    def _add_line(self, line: str) -> None:
        if _NCCL.search(line):
            self._add_nccl(line)
            if not _ROW.match(line):
                return
        text = strip_prefixes(line).strip()
        if not text:
            return
        self.text_bytes += len(text) + _A_LINE
        if self.text_bytes > LARGEST_TEXT:
            raise too_large(self.name, "of text", "leave out what is not the benchmark's: grep, tail")
        self.lines.append(text)

    def _add_nccl(self, line: str) -> None:
        if line in self.nccl or _CALL.search(line):
            return
        self.nccl_bytes += len(line) + _A_LINE
        if self.nccl_bytes > LARGEST_NCCL:
            raise too_large(self.name, "of NCCL's lines", "grep -v 'NCCL INFO', or NCCL_DEBUG_SUBSYS=INIT,NET")
        self.nccl[line] = None


def read(pieces: Iterable[bytes], name: str) -> Log:
    """Return the log that these bytes are. Raises ConfigError `import.too-large` when more must be kept than fits."""
    digest, remaining = hashlib.sha256(), _Excerpt(name)
    rest = ""
    for text in _decode_pieces(pieces, digest):
        *lines, rest = _BREAK.split(rest + text)
        for line in lines:
            remaining.add(line)
        if len(rest) > LARGEST_TEXT // 4:
            raise too_large(name, "in one line", "is it the output of a benchmark?")
    if rest:
        remaining.add(rest)
    lines = list(without_columns(remaining.lines))
    return Log(
        name=name,
        digest=digest.hexdigest(),
        lines=tuple(lines),
        nccl="\n".join(remaining.nccl),
        document=_document(lines, name),
    )


def _decode_pieces(pieces: Iterable[bytes], digest: Any) -> Iterator[str]:
    decoder: codecs.IncrementalDecoder | None = None
    for piece in pieces:
        digest.update(piece)
        if decoder is None:
            decoder = codecs.getincrementaldecoder(_encoding(piece))(errors="replace")
        yield decoder.decode(piece)
    if decoder is not None:
        yield decoder.decode(b"", final=True)


def _encoding(start: bytes) -> str:
    """Return the encoding that a byte order mark names, or the zeros of UTF-16 without one; else UTF-8."""
    for mark, encoding in _MARKS:
        if start.startswith(mark):
            return encoding
    if len(start) > 1 and (start[0] == 0) != (start[1] == 0):
        return "utf-16-be" if start[0] == 0 else "utf-16-le"
    return "utf-8"


def _document(lines: list[str], name: str) -> Any:
    """Return the value of a JSON text; None when it is none."""
    if not lines or not lines[0].lstrip().startswith("{"):
        return None
    if sum(map(len, lines)) > LARGEST_JSON:
        raise too_large(name, "of JSON", "give one run a file")
    try:
        return json_text.parse("\n".join(lines))
    except ValueError:
        return None


def too_large(name: str, what: str, hint: str) -> ConfigError:
    """Return the error of a log of which more would have to be kept than fits."""
    return ConfigError(f"{name} has more {what} than can be read", code="import.too-large", target=name, hint=hint)
