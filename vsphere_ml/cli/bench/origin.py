"""Where a benchmark is started from: command line, commit, time zone."""

from __future__ import annotations

import subprocess
import sys
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from vsphere_ml.bench.proof.launch_context import Origin


def origin(file: Path | None, link_gbit: float | None) -> Origin:
    """Return what the record says of its origin; `file` is the cluster file."""
    from vsphere_ml.bench.proof.launch_context import Origin

    return Origin(
        invocation=("vsml", *sys.argv[1:]),
        git_commit=commit(file.parent) if file is not None else "",
        timezone=timezone(),
        link_bits_per_s=None if link_gbit is None else link_gbit * 1e9,
    )


def commit(folder: Path) -> str:
    """Return the commit that the folder's work tree is at, and whether it was changed since; empty without one."""
    head = _git(folder, "rev-parse", "HEAD")
    changed = _git(folder, "status", "--porcelain", "--untracked-files=no", "--", ".") if head else ""
    return f"{head}, with changes" if changed else head


def timezone() -> str:
    """Return this machine's time zone, such as `UTC+01:00 (CET)`."""
    now = datetime.now().astimezone()
    return f"UTC{now.isoformat()[-6:]} ({now.tzname()})"


def _git(folder: Path, *words: str) -> str:
    try:
        completed = subprocess.run(  # noqa: S603 - words of ours
            ["git", "-C", str(folder), *words],  # noqa: S607 - the operator's own git
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return completed.stdout.strip()
