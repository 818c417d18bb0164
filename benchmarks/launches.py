"""What benchmarks of launches share: guests entered as a person would, two methods in turn, their ratio."""

from __future__ import annotations

import base64
import shlex
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from benchmarks.provision import vsml
from vsphere_ml.bench.stats.ratio import LaunchFigures, ratio
from vsphere_ml.bench.stats.verdicts import RESOLUTION
from vsphere_ml.cli.wiring import guest_wiring
from vsphere_ml.cli.wiring.site_wiring import SystemClock
from vsphere_ml.config.load import load
from vsphere_ml.flows.guests import boot
from vsphere_ml.flows.run_context import RunContext
from vsphere_ml.lab import runtime, state
from vsphere_ml.ssh import openssh
from vsphere_ml.vsphere.connection.session import connect
from vsphere_ml.vsphere.connection.tls import Trust
from vsphere_ml.vsphere.gateway import Gateway

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from vsphere_ml.ssh.session.target import SshTarget

T = TypeVar("T")
MPI = f"{runtime.IN_GUESTS}/openmpi-4"
CLUSTER = """
[cluster]
name = "{name}"
[vcenter]
lab = "bench"
[location]
datacenter = "lab-dc"
cluster = "gpu"
datastore = "vsan"
[source]
template = "ubuntu-22.04-gpu"
[[nodes]]
name = "node-[1-{nodes}]"
cpus = 8
memory = "64GiB"
gpu = {{ profile = "A100-40C" }}
nic = {{ kind = "auto", port_group = "roce" }}
network = {{ port_group = "vm-mgmt" }}
[guest]
playbooks = ["base", "mpi"]
[guest.settings]
mesh_user = "root"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Guests that are ready, and where they answer."""

    folder: Path
    targets: Mapping[str, SshTarget]  # by node

    def say(self, node: str, command: str) -> str:
        """Run a command in a guest as root, entered as a person would be."""
        done = self.start(node, command)
        out, err = done.communicate()
        if done.returncode:
            raise SystemExit(f"{command} failed:\n{out}\n{err}")
        return out

    def start(self, node: str, command: str) -> subprocess.Popen[str]:
        """Start a command in a guest as root, and go on."""
        words = openssh.command(self.targets[node], [f"sudo -n sh -c {shlex.quote(command)}"])
        none, pipe = subprocess.DEVNULL, subprocess.PIPE
        return subprocess.Popen(words, stdin=none, stdout=pipe, stderr=pipe, text=True)

    def bring(self, files: Mapping[str, Path]) -> None:
        """Copy files to all guests, by their paths there."""
        for node in self.targets:
            for path, file in files.items():
                text = base64.b64encode(file.read_bytes()).decode()
                self.say(node, f"mkdir -p {path.rpartition('/')[0]}; echo {text} | base64 -d >{path}")


def made(folder: Path, cluster: str) -> Site:
    """Build the VMs and bring their guests to the playbooks."""
    file = folder / "cluster.toml"
    file.write_text(cluster)
    vsml("provision", str(file), "--yes")
    return Site(folder=folder, targets=targets(file))


def targets(file: Path) -> dict[str, SshTarget]:
    """Return how each node is entered."""
    spec, clock = load(file), SystemClock()
    guests = guest_wiring.guests(spec, clock)
    lab = state.running_lab("bench")
    gateway = Gateway(connect(lab.address, lab.username, lab.password(), Trust(ca_file=lab.ca_file)))
    run = RunContext(spec, gateway, lambda _event: None, clock)
    found = boot.wait_ready(run, boot.read_running_site(run), guests, boot.start_deadline(60.0, clock))
    return {place.name: guests.target(place) for place in found.places}


def variables(python: str, mpi: str = MPI) -> list[str]:
    """Return what a person's shell would have in a guest, for a bare launcher."""
    path = f"{python.rpartition('/')[0]}:{mpi}/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    return ["HOME=/root", f"PATH={path}", f"LD_LIBRARY_PATH={mpi}/lib", "LANG=C.UTF-8", "TF_CPP_MIN_LOG_LEVEL=2"]


def horovodrun(site: Site, python: str) -> tuple[str, ...]:
    """Return the bare launcher of Horovod over Gloo, a rank on each node. Alone on one it takes no interface."""
    nodes = ",".join(f"{each.host}:1" for each in site.targets.values())
    start = (python, "-m", "horovod.runner.launch", "--gloo", "-np", str(len(site.targets)), "-H", nodes)
    return (*start, "--network-interface", "eth0") if len(site.targets) > 1 else start


def in_turn(pairs: int, bare: Callable[[int], T], ours: Callable[[int], T]) -> list[tuple[T, T]]:
    """Make both so often, each first every other time, so that a machine that drifts harms both."""
    made: list[tuple[T, T]] = []
    for number in range(1, pairs + 1):
        methods = (bare, ours) if number % 2 else (ours, bare)
        first, second = (method(number) for method in methods)
        made.append((first, second) if number % 2 else (second, first))
    return made


def throughput(pairs: Sequence[tuple[float, float]], least: float, *, low: bool = False) -> bool:
    """Print ours as a share of the bare launcher's by the seconds of a step, and return whether it is enough.

    The limit is for the mean, or with `low` for the whole interval.
    """
    shares = [bare / ours for bare, ours in pairs]
    estimate = ratio(LaunchFigures(values=(1.0,) * len(shares)), LaunchFigures(values=tuple(shares)))
    wide = estimate.half_width is None or estimate.half_width > RESOLUTION
    bound = (estimate.low or 0.0) if low else estimate.value
    preserved, missed = bound >= least, estimate.high is not None and estimate.high < least
    answer = "NOT kept" if missed else "kept" if preserved and not wide else "CANNOT BE TOLD: again, on an idle machine"
    interval = "" if estimate.low is None else f", 95 % interval {estimate.low:.3f} to {estimate.high:.3f}"
    print(f"  throughput, ours / bare: {estimate.value:.3f}{interval}, limit {least}: {answer}")
    return preserved and not wide
