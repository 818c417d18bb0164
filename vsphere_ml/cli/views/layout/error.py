"""An error as a person reads it: what failed, every detail, and what to type next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.cli.views.layout.text import line
from vsphere_ml.cli.views.layout.text import lines as joined
from vsphere_ml.core.errors import ConfigError

if TYPE_CHECKING:
    from rich.text import Text

    from vsphere_ml.core.errors import VsmlError


def text(error: VsmlError, *, code: bool = False) -> Text:
    """Return the error in full; with `code` also what scripts know it by."""
    lines = [line(("error: ", "bold red"), error.message)]
    lines += _details(error)
    if code:
        lines.append(line(("code: ", "dim"), error.code))
    if error.hint:
        lines.append(line(("hint: ", "bold cyan"), error.hint))
    return joined(*lines)


def _details(error: VsmlError) -> list[Text]:
    if not (isinstance(error, ConfigError) and error.problems):
        return [line("  ", detail) for detail in error.details]
    lines = []
    for problem in error.problems:
        lines.append(line("  ", str(problem)))
        if problem.hint:
            lines.append(line("    ", ("hint: ", "cyan"), problem.hint))
    return lines
