"""Holds a lab guest to a share of a CPU, by a control group of this machine."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from vsphere_ml.lab.guests import machine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.trained import Cluster

GROUPS = Path("/sys/fs/cgroup")
# A step computes for some tens of milliseconds: with the kernel's own period of 100 ms a guest that waits for the
# others for a fifth of the time would never be held.
PERIOD_US = 10_000


def usable() -> bool:
    """Return whether this machine lets groups be held to a share of a CPU."""
    unified = GROUPS / "cgroup.subtree_control"
    return (GROUPS / "cpu" / "cpu.cfs_quota_us").exists() or (unified.exists() and "cpu" in unified.read_text())


@contextmanager
def held(cluster: Cluster, node: str, share: float) -> Iterator[None]:
    """Hold all that runs and will run in the node's guest to this share of one CPU."""
    parent = GROUPS / "cpu" if (GROUPS / "cpu" / "cgroup.procs").exists() else GROUPS
    group = parent / f"vsml-test-{node}"
    group.mkdir()
    try:
        _limit(group, round(share * PERIOD_US))
        root = machine.pid(machine.folder(cluster.home, cluster.moid(node)))
        assert root is not None
        move(root, group)
        yield
    finally:
        while pids := (group / "cgroup.procs").read_text().split():
            for pid in pids:
                _enter(parent, int(pid))
        group.rmdir()


def _limit(group: Path, quota_us: int) -> None:
    if (group / "cpu.max").exists():
        (group / "cpu.max").write_text(f"{quota_us} {PERIOD_US}")
        return
    (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
    (group / "cpu.cfs_quota_us").write_text(str(quota_us))


def move(pid: int, group: Path) -> None:
    """Bring a process and all below it into the group; what they start later is born there."""
    _enter(group, pid)
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in children.read_text().split():
            move(int(child), group)


def _enter(group: Path, pid: int) -> None:
    try:
        (group / "cgroup.procs").write_text(str(pid))
    except ProcessLookupError:  # it has ended meanwhile
        return
