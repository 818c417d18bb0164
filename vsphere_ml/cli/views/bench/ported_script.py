"""What porting changes in a script: a diff that `patch` reads, in colours where a person reads it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from rich.segment import Segment
from rich.style import Style

from vsphere_ml.bench.porting.rewrite.labelled_diff import labelled_diff
from vsphere_ml.cli.views.layout.text import line

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult

    from vsphere_ml.bench.porting.rewrite.port_script import PortedScript

_STYLES = {"---": "bold", "+++": "bold", "@@ ": "cyan", "+": "green", "-": "red"}
_CONTROLS = dict.fromkeys((*range(9), *range(11, 32), *range(127, 160)), "�")


@dataclass(frozen=True, slots=True)
class DiffText:
    """A diff as it is: no line is folded and no tab expanded; on a terminal nothing in it can steer that."""

    content: str
    is_verbatim: ClassVar[bool] = True

    def __rich_console__(self, console: Console, _options: ConsoleOptions) -> RenderResult:
        for each in self.content.removesuffix("\n").split("\n"):
            shown = each.translate(_CONTROLS) if console.is_terminal else each
            yield Segment(shown, _style(each))
            yield Segment.line()


def _style(each: str) -> Style:
    name = next((style for start, style in _STYLES.items() if each.startswith(start)), "")
    return Style.parse(name)


def text(ported: PortedScript) -> RenderableType:
    """Return the diff; a sentence when there is nothing to change."""
    diff = labelled_diff(ported)
    if diff:
        return DiffText(diff)
    if ported.left:
        return line(f"{ported.file}: nothing is changed")
    return line((f"{ported.file} is ported: nothing to change", "green"))


def data(ported: PortedScript) -> dict[str, Any]:
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
    }


def _line(ported: PortedScript, start: int) -> int:
    return ported.source.data.count(b"\n", 0, start) + 1
