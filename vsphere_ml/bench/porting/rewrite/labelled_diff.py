"""The edits as a unified diff, each hunk labelled with the steps that it is for."""

from __future__ import annotations

import difflib
import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vsphere_ml.bench.porting.rewrite.port_script import PortedScript
    from vsphere_ml.bench.porting.steps import PortingStep

_CONTEXT = 1  # lines around a change: with more, most hunks would be for several steps
Hunk = list[tuple[str, int, int, int, int]]
_UNENDED = "\\ No newline at end of file\n"


def labelled_diff(ported: PortedScript) -> str:
    """Return what changes, as `patch` reads it; nothing when nothing does."""
    before, after = _lines(ported.before, ported), _lines(ported.after, ported)
    changes = difflib.SequenceMatcher(None, before, after, autojunk=False)
    hunks = [_hunk_text(ported, hunk, before, after) for hunk in changes.get_grouped_opcodes(_CONTEXT)]
    return f"--- {ported.file}\n+++ {ported.file}\n" + "".join(hunks) if hunks else ""


def _lines(content: bytes, ported: PortedScript) -> list[str]:
    return io.StringIO(content.decode(ported.source.encoding), newline="\n").readlines()


def _hunk_text(ported: PortedScript, hunk: Hunk, before: list[str], after: list[str]) -> str:
    _, old, _, new, _ = hunk[0]
    _, _, old_end, _, new_end = hunk[-1]
    steps = sorted({step.number: step for step in _steps(ported, old, old_end)}.items())
    label = "; ".join(f"{number} {step.title}" for number, step in steps)
    head = f"@@ -{_range(old, old_end)} +{_range(new, new_end)} @@ {label}".rstrip()
    return f"{head}\n{''.join(_hunk_lines(hunk, before, after))}"


def _range(start: int, end: int) -> str:
    """Return lines as a diff counts them: from 1, and an empty range by the line before it."""
    length = end - start
    return f"{start + 1 if length else start},{length}"


def _hunk_lines(hunk: Hunk, before: list[str], after: list[str]) -> Iterator[str]:
    for tag, old, old_end, new, new_end in hunk:
        if tag == "equal":
            yield from (_mark(" ", each) for each in before[old:old_end])
        else:
            yield from (_mark("-", each) for each in before[old:old_end])
            yield from (_mark("+", each) for each in after[new:new_end])


def _mark(mark: str, line: str) -> str:
    return f"{mark}{line}" if line.endswith("\n") else f"{mark}{line}\n{_UNENDED}"


def _steps(ported: PortedScript, old: int, old_end: int) -> Iterator[PortingStep]:
    """Yield the steps of the edits in these lines. One at a line's beginning is between two: in the hunk, either is."""
    for each in ported.edits:
        line = ported.source.data.count(b"\n", 0, each.start)
        if old <= line <= old_end:
            yield from each.steps
