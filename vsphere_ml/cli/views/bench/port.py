"""The seven steps of porting, one line each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group

from vsphere_ml.bench.porting.steps import PortingState
from vsphere_ml.cli.views.layout.text import line, table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType
    from rich.text import Text

    from vsphere_ml.bench.porting.check import PortingCheck
    from vsphere_ml.bench.porting.steps import FoundStep

TITLES = ("STEP", "", "STATE", "LINE", "WHAT WAS SEEN")
STYLES = {
    PortingState.FOUND: "green",
    PortingState.MISSING: "yellow",
    PortingState.WRONG: "red",
    PortingState.NOT_NEEDED: "dim",
}


def text(ported: PortingCheck) -> Group:
    """Return a line a step, then a line of code for each that is missing."""
    return Group(*_parts(ported))


def _parts(ported: PortingCheck) -> Iterator[RenderableType]:
    yield table(TITLES, (_row(each) for each in ported.found))
    missing = [each.step for each in ported.found if each.state is PortingState.MISSING]
    if missing:
        yield line(("what is missing, in TensorFlow", "bold"))
        yield from (line(f"   {step.number}  {step.example}") for step in missing)
    yield line((f"Keras {ported.keras} was assumed; the script was not run", "dim"))


def _row(found: FoundStep) -> tuple[str | Text, ...]:
    return (
        str(found.step.number),
        found.step.title,
        line((found.state.value, STYLES[found.state])),
        "-" if found.line is None else str(found.line),
        found.message,
    )
