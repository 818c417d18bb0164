"""What porting changes in a script: a diff that `patch` reads, in colours where a person reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from vsphere_ml.bench.porting.rewrite.labelled_diff import labelled_diff
from vsphere_ml.cli.views.layout.text import line
from vsphere_ml.cli.views.layout.verbatim import VerbatimText

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import RenderableType

    from vsphere_ml.bench.porting.loss_curves import CurveProof
    from vsphere_ml.bench.porting.rewrite.port_script import PortedScript
    from vsphere_ml.bench.porting.steps import FoundStep
    from vsphere_ml.core.diagnostics import Diagnostic

_STYLES = {"---": "bold", "+++": "bold", "@@ ": "cyan", "+": "green", "-": "red"}


class _DiffText(VerbatimText):
    """A diff, in the colours of its lines."""

    def style_of(self, line: str) -> str:
        return next((style for start, style in _STYLES.items() if line.startswith(start)), "")


class _EditData(TypedDict):
    step: int
    title: str
    line: int


class PortedScriptData(TypedDict):
    """What porting changes in a script, what it leaves, where it was written, and how equal the losses are."""

    file: str
    changed: bool
    diff: str
    edits: list[_EditData]
    left: tuple[Diagnostic, ...]
    found: tuple[FoundStep, ...]
    written: Path | None
    proof: CurveProof | None


def text(ported: PortedScript) -> RenderableType:
    """Return the diff; a sentence when there is nothing to change."""
    diff = labelled_diff(ported)
    if diff:
        return _DiffText(diff)
    if ported.left:
        return line(f"{ported.file}: nothing is changed")
    return line((f"{ported.file} is ported: nothing to change", "green"))


def data(ported: PortedScript, written: Path | None, proof: CurveProof | None) -> PortedScriptData:
    """Return the diff, and edits and what is left by step and line."""
    edits = sorted(
        {(step.number, step.title, _line(ported, each.start)) for each in ported.edits for step in each.steps}
    )
    return {
        "file": ported.file,
        "changed": not ported.is_unchanged,
        "diff": labelled_diff(ported),
        "edits": [{"step": number, "title": title, "line": at} for number, title, at in edits],
        "left": ported.left,
        "found": ported.checked.found,
        "written": written,
        "proof": proof,
    }


def _line(ported: PortedScript, start: int) -> int:
    return ported.source.data.count(b"\n", 0, start) + 1
