"""The checks of vsml itself, one line each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group

from vsphere_ml.cli.views.layout.text import line, table
from vsphere_ml.core.diagnostics import Diagnostic, Severity

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


_SAID = {Severity.OK: ("holds", "green"), Severity.ERROR: ("does not hold", "red")}


def text(checks: Sequence[Diagnostic], record: Path) -> Group:
    """Return a line a check, and what they say nothing about."""
    rows = ((line(_SAID[each.severity]), each.target, each.message) for each in checks)
    return Group(
        table(("", "CHECK", "WHAT WAS SEEN"), rows),
        line("real TCP, MPICH and Horovod on lab guests; nothing here tells how NCCL, GPUs or RDMA do"),
        line(f"the record is in {record}"),
        line("   more of it by: ", (f"vsml bench explain {record}", "bold")),
    )
