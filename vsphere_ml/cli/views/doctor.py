"""What `vsml doctor` found out, check by check."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from vsphere_ml.cli.views.text import line, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

STYLES = {"ok": "green", "warning": "yellow", "failed": "bold red"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was looked at: ok, warning or failed, and what was seen."""

    name: str
    state: str
    told: str


def text(checks: Sequence[Check]) -> Table:
    """Return one line a check."""
    rows = ((line((each.state, STYLES[each.state])), each.name, each.told) for each in checks)
    return table(("STATE", "CHECK", "WHAT WAS SEEN"), rows)


def data(checks: Sequence[Check]) -> dict[str, Any]:
    """Return the checks' fields."""
    return {"checks": [asdict(each) for each in checks]}
