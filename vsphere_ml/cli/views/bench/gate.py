"""A gate's checks, one line each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.cli.views.layout.text import line, table
from vsphere_ml.core.diagnostics import Severity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vsphere_ml.bench.gate.gate import GateCheck
    from vsphere_ml.cli.views.layout.columns import Columns

_WORDS = {Severity.OK: "pass", Severity.ERROR: "fail", Severity.UNKNOWN: "cannot tell"}
STYLES = {Severity.OK: "green", Severity.ERROR: "red", Severity.UNKNOWN: "yellow"}


def text(checks: Sequence[GateCheck]) -> Columns:
    """Return a line a check."""
    rows = (
        (line((_WORDS[each.severity], STYLES[each.severity])), each.kind, each.target, each.message) for each in checks
    )
    return table(("", "KIND", "CHECK", "WHAT WAS SEEN"), rows)
