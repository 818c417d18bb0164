"""A gate's checks, one line each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.cli.views.layout.text import line, table
from vsphere_ml.core.diagnostics import Severity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.text import Text

    from vsphere_ml.bench.gate.gate import GateCheck
    from vsphere_ml.cli.views.layout.columns import Columns

_WORDS = {Severity.OK: "pass", Severity.ERROR: "fail", Severity.UNKNOWN: "cannot tell"}
STYLES = {Severity.OK: "green", Severity.ERROR: "red", Severity.UNKNOWN: "yellow"}


def text(checks: Sequence[GateCheck]) -> Columns:
    """Return a line a check; those that pass with the same words are one line."""
    alike: dict[tuple[str, ...], list[GateCheck]] = {}
    for each in checks:
        apart = () if each.severity is Severity.OK else (each.target,)
        alike.setdefault((each.severity, each.kind, each.message, *apart), []).append(each)
    return table(("", "KIND", "CHECK", "WHAT WAS SEEN"), (_row(each[0], len(each)) for each in alike.values()))


def _row(check: GateCheck, number: int) -> tuple[str | Text, ...]:
    state = line((_WORDS[check.severity], STYLES[check.severity]))
    more = f", and {number - 1} more like it" if number > 1 else ""
    return state, check.kind, f"{check.target}{more}", check.message
