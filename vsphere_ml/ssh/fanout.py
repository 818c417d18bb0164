"""The same work in many guests at once, each on a connection and in a thread of its own."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from vsphere_ml.core.errors import VsmlError
from vsphere_ml.ssh.shell import open_shell

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from vsphere_ml.core.ports import Clock
    from vsphere_ml.ssh.shell import SshShell
    from vsphere_ml.ssh.target import SshTarget

T = TypeVar("T")
PARALLEL = 32


def in_each(
    targets: Sequence[SshTarget],
    logs: Path,
    clock: Clock,
    work: Callable[[SshShell], T],
    *,
    parallel: int = PARALLEL,
) -> Mapping[str, T | VsmlError]:
    """Return each guest's result or error by its name. One guest's failure leaves the others alone.

    A guest's log is `logs/NAME.log`.
    """

    def one(target: SshTarget) -> T | VsmlError:
        try:
            with open_shell(target, logs / f"{target.name}.log", clock) as shell:
                return work(shell)
        except VsmlError as error:
            return error

    with ThreadPoolExecutor(max_workers=max(1, min(parallel, len(targets)))) as pool:
        return dict(zip((target.name for target in targets), pool.map(one, targets), strict=True))
