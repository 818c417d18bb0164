"""The names of jobs that this machine has started or listed, for a shell to complete; their records are on nodes."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
GUESTS, PODS = "jobs", "pod-jobs"


def state_folder(lab: str | None) -> Path:
    """Return where vsml keeps what it knows of clusters; VSML_STATE_DIR overrides it.

    For a lab that is a folder which goes with the lab: the next lab's VMs are others under the same ids.
    """
    if lab is not None:
        from vsphere_ml.lab import folders

        return folders.state(lab) / "clusters"
    if set_to := os.environ.get("VSML_STATE_DIR"):
        return Path(set_to).absolute()
    import platformdirs

    return Path(platformdirs.user_state_dir("vsml")).absolute()


def guests_folder(cluster: str, lab: str | None) -> Path:
    """Return where vsml keeps what it knows of a cluster's guests."""
    return state_folder(lab) / "guests" / cluster


@dataclass(frozen=True, slots=True)
class KnownJobs:
    """A folder with an empty file for each job: one that cannot be read or written counts as empty."""

    folder: Path

    def names(self) -> list[str]:
        """Return the jobs' names, the latest first."""
        try:
            with os.scandir(self.folder) as found:
                dated = sorted(((each.stat().st_mtime_ns, each.name) for each in found), reverse=True)
        except OSError:
            return []
        return [name for _, name in dated]

    def add(self, names: Sequence[str]) -> None:
        """Note jobs, of which the first is the latest."""
        known = self.names()
        with suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            for name in reversed(names):
                if name not in known and _NAME.fullmatch(name):
                    (self.folder / name).touch(0o600)

    def keep(self, names: Sequence[str]) -> None:
        """Note these jobs, and forget all others."""
        self.add(names)
        for name in self.names():
            if name not in names:
                self.drop(name)

    def drop(self, name: str) -> None:
        """Forget a job."""
        if _NAME.fullmatch(name):
            with suppress(OSError):
                (self.folder / name).unlink()
