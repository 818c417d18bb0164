"""A gate's checks, one line each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.bench.gate.gate import Passed
from vsphere_ml.cli.views.layout.text import line, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vsphere_ml.bench.gate.gate import GateCheck
    from vsphere_ml.cli.views.layout.columns import Columns

STYLES = {Passed.YES: "green", Passed.NO: "red", Passed.UNKNOWN: "yellow"}


def text(checks: Sequence[GateCheck]) -> Columns:
    """Return a line a check."""
    rows = ((line((each.passed.value, STYLES[each.passed])), each.kind, each.name, each.message) for each in checks)
    return table(("", "KIND", "CHECK", "WHAT WAS SEEN"), rows)
