"""What `vsml bench` costs: the same script under it and under horovodrun alone, in turn, on two lab guests.

    make bench-overhead

*Throughput* is that of the steps after the warm-up, pair by pair; the limit is for the geometric mean of the pairs, and
it is missed only when the whole interval is below, and kept only when that is no wider than 5 % to either side.
*Start* is the time from the command to the end of the first step; the limit is for the median of the differences. The
bare launcher is entered by OpenSSH and given the same interface and the same nodes. vsml's own process and both guests
share this machine's cores, so what vsml does meanwhile takes more from the training than on hosts of their own.
"""

from __future__ import annotations

import json
import shlex
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import launches
from benchmarks.launches import CLUSTER, Site
from benchmarks.overhead_script import STEPS
from benchmarks.provision import machine, running, vsml
from vsphere_ml.lab import runtime
from vsphere_ml.lab.guests import needs

if TYPE_CHECKING:
    from collections.abc import Sequence

PAIRS = 8
WARM_UP = 20  # steps
LEAST_THROUGHPUT = 0.99
MOST_START_S = 5.0
SCRIPT = Path(__file__).with_name("overhead_script.py")
IN_GUESTS, FIRST, LINES = "/var/tmp/overhead.py", "/var/tmp/overhead-first", "/var/tmp/overhead-lines"
PYTHON = f"{runtime.IN_GUESTS}/venv/bin/python"
SETTINGS = f"""
runtime_path = "{runtime.IN_GUESTS}/venv"
mpirun = "{launches.MPI}/bin/mpirun"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """What came of one start of the script."""

    start_s: float  # from the command to the end of the first step
    step_s: float  # the mean after the warm-up


@dataclass(frozen=True, slots=True, kw_only=True)
class Methods:
    """The two ways to start the script."""

    site: Site

    def ours(self, number: int) -> Launch:
        """Start it by `vsml bench`."""
        folder = self.site.folder
        words = ("--script", str(SCRIPT), "--script-args", f"{FIRST} {LINES}", "--results", str(folder / f"{number}"))
        began = time.time()
        answers = vsml("bench", str(folder / "cluster.toml"), *words)
        (steps, *_) = answers["data"]["runs"][0]["steps"]["step_s"]
        return self._launch(began, steps)

    def bare(self, _number: int) -> Launch:
        """Start it by horovodrun alone."""
        words = (*launches.horovodrun(self.site, PYTHON), PYTHON, IN_GUESTS, FIRST, LINES)
        began = time.time()
        self.site.say("node-1", shlex.join(["env", "-i", *launches.variables(PYTHON), *words]))
        lines = self.site.say("node-1", f"cat {LINES}").splitlines()
        return self._launch(began, [json.loads(line)["seconds"] for line in lines])

    def _launch(self, began: float, steps: Sequence[float]) -> Launch:
        if len(steps) != STEPS:
            raise SystemExit(f"{len(steps)} steps of {STEPS} were told")
        first = float(self.site.say("node-1", f"cat {FIRST}; rm -f {FIRST} {LINES}"))
        return Launch(start_s=first - began, step_s=statistics.fmean(steps[WARM_UP:]))


def main() -> int:
    if missing := needs.missing_need() or runtime.missing_need():
        print(f"cannot run: {missing}", file=sys.stderr)
        return 1
    runtime.make_runtime()
    print(machine())
    with tempfile.TemporaryDirectory() as folder, running("sixteen.toml", guests=True):
        site = launches.made(Path(folder), CLUSTER.format(name="overhead", nodes=2) + SETTINGS)
        site.bring({IN_GUESTS: SCRIPT})
        return 0 if measured(Methods(site=site)) else 1


def measured(methods: Methods) -> bool:
    """Start both in turn, and say what of it is within its limit."""
    methods.bare(0)  # the first reads the libraries from the disk
    pairs = launches.in_turn(PAIRS, methods.bare, methods.ours)
    for pair in pairs:
        for name, each in zip(("bare", "ours"), pair, strict=True):
            print(f"  {name}: first step after {each.start_s:.2f} s, a step takes {each.step_s * 1e3:.2f} ms")
    steps = [(bare.step_s, ours.step_s) for bare, ours in pairs]
    return launches.throughput(steps, LEAST_THROUGHPUT) & start(pairs)


def start(pairs: Sequence[tuple[Launch, Launch]]) -> bool:
    """Print how much later our first step is, and return whether it is soon enough."""
    later = [ours.start_s - bare.start_s for bare, ours in pairs]
    median = statistics.median(later)
    preserved = median <= MOST_START_S
    print(
        f"  first step, ours - bare: median {median:.2f} s (from {min(later):.2f} to {max(later):.2f}), "
        f"limit {MOST_START_S} s: {'kept' if preserved else 'NOT kept'}"
    )
    return preserved


if __name__ == "__main__":
    sys.exit(main())
