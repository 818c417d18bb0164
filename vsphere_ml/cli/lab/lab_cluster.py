"""A cluster of lab guests for as long as a command runs: made by the real flows, gone with its lab at the end."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from vsphere_ml.bench.launch.matrix import BenchSpec
    from vsphere_ml.bench.model.record import Run
    from vsphere_ml.cli.terminal import Terminal
    from vsphere_ml.core.model.spec import ClusterSpec
    from vsphere_ml.core.ports.vcenter import VCenter

NODES = 4
LIMIT_S = 600.0  # of one launch
_FILE = """\
[cluster]
name = "{name}"
[vcenter]
lab = "{name}"
[location]
datacenter = "lab-dc"
cluster = "gpu"
folder = "{name}"
datastore = "vsan"
[source]
template = "ubuntu-22.04-gpu"
[defaults]
cpus = 16
memory = "64GiB"
gpu = {{ profile = "A100-40C" }}
nic = {{ model = "ConnectX-6 Dx", port_group = "roce" }}
network = {{ port_group = "vm-mgmt" }}
[[nodes]]
name = "node-[1-{nodes}]"
[guest]
playbooks = ["base", "mpi"]
[guest.settings]
runtime_path = "{runtime}/{venv}"
mpirun = "{runtime}/{mpi}/bin/mpirun"
mesh_user = "root"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabCluster:
    """Guests that are ready to be measured over MPICH, each on a simulated host of its own."""

    name: str
    spec: ClusterSpec
    vcenter: VCenter
    terminal: Terminal

    def shape(self, rate: str, *nodes: str) -> None:
        """Give the links of these nodes, or of all, a rate."""
        from vsphere_ml.lab import state
        from vsphere_ml.lab.guests import seen, shape
        from vsphere_ml.lab.guests.boot import power_hook

        home = state.folder(self.name)
        shape.shape(home / power_hook.GUESTS, rate, tuple(each.vm for each in seen.guests_named(home, nodes)))

    def bench(self, spec: BenchSpec, folder: Path) -> tuple[Run, ...]:
        """Return the spec's launches, recorded in the folder."""
        from vsphere_ml.bench.model.job import RunIn
        from vsphere_ml.cli.bench.launch_settings import launch_settings
        from vsphere_ml.cli.views.progress.bench_progress import show_bench_progress
        from vsphere_ml.cli.wiring import guest_wiring, site_wiring
        from vsphere_ml.flows.bench.series import Benchmark, bench

        clock = site_wiring.SystemClock()
        with show_bench_progress(self.terminal.err) as notify:
            asked = Benchmark(
                spec=self.spec,
                vcenter=self.vcenter,
                guests=guest_wiring.guests(self.spec, clock),
                bench_spec=spec,
                settings=launch_settings(self.spec, RunIn.GUEST, "", LIMIT_S),
                folder=folder,
                notify=lambda _event: None,
                notify_bench=notify,
                clock=clock,
            )
            return bench(asked).runs


@contextmanager
def lab_cluster(name: str, terminal: Terminal) -> Iterator[LabCluster]:
    """Yield a cluster in a lab of this name, made anew; another command that wants the same waits for its end.

    NotPossible `lab.no-guests` without root or Linux, `lab.no-runtime` where Horovod cannot be built.
    """
    from vsphere_ml.cli.wiring import site_wiring
    from vsphere_ml.cli.wiring.cluster_file import load
    from vsphere_ml.lab import folders, mpich, runtime, server, state
    from vsphere_ml.lab.guests import needs

    needs.check()
    mpich.make_mpich(terminal.say)
    home = state.folder(name)
    with folders.hold_lock(home.with_name(f".{name}.used")):
        server.stop_lab(name)
        try:
            server.start_lab(name=name, say=terminal.say, guests=True)
            file = home / "cluster.toml"
            at = {"runtime": runtime.IN_GUESTS, "venv": mpich.VENV, "mpi": mpich.FOLDER}
            file.write_text(_FILE.format(name=name, nodes=NODES, **at))
            spec = load(file)
            with site_wiring.vcenter(spec.vcenter, terminal) as vcenter:
                _provision(spec, vcenter)
                yield LabCluster(name=name, spec=spec, vcenter=vcenter, terminal=terminal)
        finally:
            server.stop_lab(name)


def _provision(spec: ClusterSpec, vcenter: VCenter) -> None:
    from vsphere_ml.cli.wiring import guest_wiring, site_wiring
    from vsphere_ml.flows.cluster.provision import provision
    from vsphere_ml.flows.run_context import RunContext

    clock = site_wiring.SystemClock()
    report = provision(
        RunContext(spec, vcenter, lambda _event: None, clock),
        approve=lambda _plan: True,
        given=guest_wiring.for_guests(spec, lambda _event: None, clock, wait_s=300.0),
    )
    if report.error is not None:
        raise report.error
