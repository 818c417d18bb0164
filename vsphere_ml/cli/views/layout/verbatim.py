"""Text that another program reads: written as it is, whatever the terminal's width."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rich.segment import Segment
from rich.style import Style

from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

_CONTROLS = dict.fromkeys((*range(9), *range(11, 32), *range(127, 160)), "�")


@dataclass(frozen=True)
class VerbatimText:
    """No line is folded and no tab expanded; on a terminal nothing in it can steer that."""

    content: str
    is_verbatim: ClassVar[bool] = True

    def __rich_console__(self, console: Console, _options: ConsoleOptions) -> RenderResult:
        for each in self.content.removesuffix("\n").split("\n"):
            shown = each.translate(_CONTROLS) if console.is_terminal else each
            yield Segment(shown, Style.parse(self.style_of(each)))
            yield Segment.line()

    def style_of(self, line: str) -> str:  # noqa: ARG002 - for kinds of text that have styles
        """Return the style of a line."""
        return ""
