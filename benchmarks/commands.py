"""Whole commands on labs that nobody has used: how long each takes, and how many calls to vCenter it makes."""

from __future__ import annotations

import os
import statistics
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.provision import HERE, running
from vsphere_ml.lab import control

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from vsphere_ml.lab.state import Lab

    Prepare = Callable[[Path, Lab], "Command"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One figure: what was measured, and the limit that it has to keep."""

    what: str
    value: float
    limit: float
    unit: str

    @property
    def holds(self) -> bool:
        return self.value <= self.limit

    def __str__(self) -> str:
        kept = "kept" if self.holds else "NOT kept"
        return f"  {self.what}: {self.value:.2f}{self.unit}, limit {self.limit:.2f}{self.unit}: {kept}"


@dataclass(frozen=True, slots=True)
class Command:
    """A command as one types it, with what its environment has beside this process's."""

    words: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    folder: Path | None = None  # in which it runs


def on_fresh_lab(
    prepare: Prepare,
    topology: str = "sixteen.toml",
    check: Callable[[Lab], None] = lambda _lab: None,
) -> tuple[float, int]:
    """Return how long a command takes on a lab that nobody has used, and how many calls to vCenter it makes.

    Neither what `prepare` does in an empty folder is counted, nor how the lab is checked afterwards.
    """
    with tempfile.TemporaryDirectory() as folder, running(topology) as lab:
        command = prepare(Path(folder), lab)
        before = calls(lab)
        seconds = timed(command.words, command.environment, command.folder)
        made = calls(lab) - before
        check(lab)
        return seconds, made


def calls(lab: Lab) -> int:
    return sum(control.ask(lab, "GET", "calls").values())


def timed(words: Sequence[str], more: Mapping[str, str] | None = None, folder: Path | None = None) -> float:
    """Return how many seconds a command takes. Raises SystemExit with what it said when it fails."""
    begun = time.monotonic()
    environment = os.environ | dict(more or {})
    done = subprocess.run(words, env=environment, cwd=folder, capture_output=True, text=True, check=False)
    seconds = time.monotonic() - begun
    if done.returncode:
        raise SystemExit(f"{' '.join(words)} failed:\n{done.stdout}\n{done.stderr}")
    return seconds


def spread(times: Sequence[float]) -> str:
    return f"{min(times):.2f} to {max(times):.2f} s, median {statistics.median(times):.2f} s"


def cluster_file(folder: Path, number: int) -> str:
    """Write the cluster file for so many VMs with one whole A100 each and no NIC."""
    text = (HERE / "sixteen-cluster.toml").read_text().replace("[01-64]", f"[01-{number:02}]")
    file = folder / "cluster.toml"
    nic = 'nic = { kind = "auto", port_group = "roce" }'
    file.write_text(text.replace('spread = "pack"\n', "").replace(nic, 'nic = { kind = "none" }'))
    return str(file)
