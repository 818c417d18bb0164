"""With VSML_NO_SKIPS=1 or CI=true a skipped test fails, unless it needs what no installation brings."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pytest

GPU = "needs an NVIDIA GPU"
RDMA = "needs an RDMA device"
USER = "needs a user other than root"
CPU_QUOTA = "needs control groups with the kernel's CPU quota"
# The closed list: each is a reason as a whole, after the colon where it explains another one.
UNAVOIDABLE = (
    GPU,
    RDMA,
    USER,
    CPU_QUOTA,
    "lab guests need Linux namespaces",
    "lab guests need root, for network namespaces and mounts",
    "lab guests need overlayfs, which this kernel does not offer",
    "needs root on Linux, for mount namespaces",
)


def strict(environment: Mapping[str, str] = os.environ) -> bool:
    """Return whether a skip fails; VSML_NO_SKIPS=0 takes back what CI=true switches on."""
    text = environment.get("VSML_NO_SKIPS", environment.get("CI", ""))
    return text.lower() in {"1", "true", "yes"}


def unavoidable(reason: str) -> bool:
    """Return whether nothing that can be installed would let the test run."""
    return any(re.search(rf"(^|: ){re.escape(each)}$", reason) for each in UNAVOIDABLE)


def judge(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Fail a skip that something installed would avoid, where skips fail."""
    if report.outcome != "skipped" or hasattr(report, "wasxfail") or not strict():
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    reason = reason.removeprefix("Skipped: ")
    if not unavoidable(reason):
        report.outcome = "failed"
        report.longrepr = f"skipped where nothing may lack: {reason}"
