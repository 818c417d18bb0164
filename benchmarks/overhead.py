"""What `vsml bench` costs: the same script under it and under horovodrun alone, in turn, on two lab guests.

    make bench-overhead

*Throughput* is that of the steps after the warm-up, pair by pair; the limit is for the geometric mean of the pairs, and
it is missed only when the whole interval is below, and kept only when that is no wider than 5 % to either side.
*Start* is the time from the command to the end of the first step; the limit is for the median of the differences. The
bare launcher is entered by OpenSSH and given the same interface and the same nodes. vsml's own process and both guests
share this machine's cores, so what vsml does meanwhile takes more from the training than on hosts of their own.
"""

from __future__ import annotations

import base64
import json
import os
import platform
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.overhead_script import STEPS
from benchmarks.provision import running, vsml
from vsphere_ml.bench.stats.ratio import LaunchFigures, ratio
from vsphere_ml.bench.stats.verdicts import RESOLUTION
from vsphere_ml.cli.wiring import guest_wiring
from vsphere_ml.cli.wiring.site_wiring import SystemClock
from vsphere_ml.config.load import load
from vsphere_ml.flows.guests import boot
from vsphere_ml.flows.run_context import RunContext
from vsphere_ml.lab import runtime, state
from vsphere_ml.lab.guests import needs
from vsphere_ml.ssh import openssh
from vsphere_ml.vsphere.connection.session import connect
from vsphere_ml.vsphere.connection.tls import Trust
from vsphere_ml.vsphere.gateway import Gateway

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from vsphere_ml.ssh.session.target import SshTarget

PAIRS = 8
WARM_UP = 20  # steps
LEAST_THROUGHPUT = 0.99
MOST_START_S = 5.0
SCRIPT = Path(__file__).with_name("overhead_script.py")
IN_GUESTS, FIRST, LINES = "/var/tmp/overhead.py", "/var/tmp/overhead-first", "/var/tmp/overhead-lines"
PYTHON = f"{runtime.IN_GUESTS}/venv/bin/python"
CLUSTER = f"""
[cluster]
name = "overhead"
[vcenter]
lab = "bench"
[location]
datacenter = "lab-dc"
cluster = "gpu"
datastore = "vsan"
[source]
template = "ubuntu-22.04-gpu"
[[nodes]]
name = "node-[1-2]"
cpus = 8
memory = "64GiB"
gpu = {{ profile = "A100-40C" }}
nic = {{ kind = "auto", port_group = "roce" }}
network = {{ port_group = "vm-mgmt" }}
[guest]
playbooks = ["base", "mpi"]
[guest.settings]
runtime_path = "{runtime.IN_GUESTS}/venv"
mpirun = "{runtime.IN_GUESTS}/openmpi-4/bin/mpirun"
mesh_user = "root"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """What came of one start of the script."""

    start_s: float  # from the command to the end of the first step
    step_s: float  # the mean after the warm-up


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Two guests that are ready, and where they answer."""

    folder: Path
    targets: Mapping[str, SshTarget]  # by node

    @property
    def file(self) -> str:
        return str(self.folder / "cluster.toml")

    def ours(self, number: int) -> Launch:
        """Start it by `vsml bench`."""
        words = (
            "--script",
            str(SCRIPT),
            "--script-args",
            f"{FIRST} {LINES}",
            "--results",
            str(self.folder / f"{number}"),
        )
        began = time.time()
        answers = vsml("bench", self.file, *words)
        (steps, *_) = answers["data"]["runs"][0]["steps"]["step_s"]
        return self._launch(began, steps)

    def bare(self, _number: int) -> Launch:
        """Start it by horovodrun alone."""
        nodes = ",".join(f"{each.host}:1" for each in self.targets.values())
        launcher = (PYTHON, "-m", "horovod.runner.launch", "--gloo", "-np", "2", "-H", nodes)
        words = (*launcher, "--network-interface", "eth0", PYTHON, IN_GUESTS, FIRST, LINES)
        began = time.time()
        self.say("node-1", shlex.join(["env", "-i", *variables(), *words]))
        lines = self.say("node-1", f"cat {LINES}").splitlines()
        return self._launch(began, [json.loads(line)["seconds"] for line in lines])

    def _launch(self, began: float, steps: Sequence[float]) -> Launch:
        if len(steps) != STEPS:
            raise SystemExit(f"{len(steps)} steps of {STEPS} were told")
        first = float(self.say("node-1", f"cat {FIRST}; rm -f {FIRST} {LINES}"))
        return Launch(start_s=first - began, step_s=statistics.fmean(steps[WARM_UP:]))

    def say(self, node: str, command: str) -> str:
        """Run a command in a guest as root, entered as a person would be."""
        words = openssh.command(self.targets[node], [f"sudo -n sh -c {shlex.quote(command)}"])
        done = subprocess.run(words, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        if done.returncode:
            raise SystemExit(f"{command} failed:\n{done.stdout}\n{done.stderr}")
        return done.stdout


def variables() -> list[str]:
    mpi = f"{runtime.IN_GUESTS}/openmpi-4"
    path = f"{runtime.IN_GUESTS}/venv/bin:{mpi}/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    return ["HOME=/root", f"PATH={path}", f"LD_LIBRARY_PATH={mpi}/lib", "LANG=C.UTF-8", "TF_CPP_MIN_LOG_LEVEL=2"]


def main() -> int:
    if missing := needs.missing_need() or runtime.missing_need():
        print(f"cannot run: {missing}", file=sys.stderr)
        return 1
    runtime.make_runtime()
    print(
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {platform.platform()}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}, load {os.getloadavg()[0]:.1f}"
    )
    with tempfile.TemporaryDirectory() as folder, running("sixteen.toml", guests=True):
        return 0 if measured(made(Path(folder))) else 1


def made(folder: Path) -> Site:
    """Build the VMs, bring their guests to the playbooks, and the script to the guests."""
    file = folder / "cluster.toml"
    file.write_text(CLUSTER)
    vsml("provision", str(file), "--yes")
    site = Site(folder=folder, targets=targets(file))
    text = base64.b64encode(SCRIPT.read_bytes()).decode()
    for name in site.targets:
        site.say(name, f"echo {text} | base64 -d >{IN_GUESTS}")
    return site


def targets(file: Path) -> dict[str, SshTarget]:
    """Return how each node is entered."""
    spec, clock = load(file), SystemClock()
    guests = guest_wiring.guests(spec, clock)
    lab = state.running_lab("bench")
    gateway = Gateway(connect(lab.address, lab.username, lab.password(), Trust(ca_file=lab.ca_file)))
    run = RunContext(spec, gateway, lambda _event: None, clock)
    found = boot.wait_ready(run, boot.read_running_site(run), guests, boot.start_deadline(60.0, clock))
    return {place.name: guests.target(place) for place in found.places}


def measured(site: Site) -> bool:
    """Start both in turn, each first every other time, so that a machine that drifts harms both."""
    site.bare(0)  # the first reads the libraries from the disk
    pairs = []
    for number in range(1, PAIRS + 1):
        methods = (site.bare, site.ours) if number % 2 else (site.ours, site.bare)
        first, second = (option(number) for option in methods)
        pairs.append((first, second) if number % 2 else (second, first))
        for name, each in zip(("bare", "ours"), pairs[-1], strict=True):
            print(f"  {name}: first step after {each.start_s:.2f} s, a step takes {each.step_s * 1e3:.2f} ms")
    return throughput(pairs) & start(pairs)


def throughput(pairs: Sequence[tuple[Launch, Launch]]) -> bool:
    """Print ours as a share of the bare launcher's, and return whether it is enough."""
    shares = [bare.step_s / ours.step_s for bare, ours in pairs]
    estimate = ratio(LaunchFigures(values=(1.0,) * len(shares)), LaunchFigures(values=tuple(shares)))
    wide = estimate.half_width is None or estimate.half_width > RESOLUTION
    preserved = estimate.value >= LEAST_THROUGHPUT
    missed = estimate.high is not None and estimate.high < LEAST_THROUGHPUT
    answer = "NOT kept" if missed else "kept" if preserved and not wide else "CANNOT BE TOLD: again, on an idle machine"
    interval = "" if estimate.low is None else f", 95 % interval {estimate.low:.3f} to {estimate.high:.3f}"
    print(f"  throughput, ours / bare: {estimate.value:.3f}{interval}, limit {LEAST_THROUGHPUT}: {answer}")
    return preserved and not wide


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
