"""The same small CNN under each engine, on lab guests behind links of 50 Mbit/s: against the bound, and vsml's cost.

    make bench-engines
    python -m benchmarks.engines --engine pytorch --nodes 4 --pairs 0

*Share of the bound*: a step takes no less than its computing, nor than a ring all-reduce of the gradients over the
link as `iperf3` measured it in the same run; the limit is for the median launch of each engine under `vsml bench`.
*Throughput* is that of rank 0's steps after the warm-up under `vsml bench` against the engine's bare launcher, which
runs the same `train.py` with the same arguments, in turn, pair by pair; the limit is for the whole 95 % interval.
Without pairs a launch under `vsml bench` tells the share alone. All guests share this machine's cores; the links are
so slow that they set the pace. On one guest nothing is exchanged, and what is left of the bound is computing.
"""

from __future__ import annotations

import argparse
import json
import math
import shlex
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import launches
from benchmarks.launches import CLUSTER, Site
from benchmarks.provision import HERE, VSML, machine, running, vsml
from vsphere_ml.bench.analysis.step_parts import step_parts
from vsphere_ml.bench.analysis.study import study
from vsphere_ml.bench.launch.remote_job import WORKLOADS
from vsphere_ml.bench.model.engines import ENGINES, Engine
from vsphere_ml.bench.model.launcher_names import LauncherName
from vsphere_ml.bench.network.bounds import gradient_bytes, ring_s
from vsphere_ml.bench.records import store
from vsphere_ml.lab import jax, runtime
from vsphere_ml.lab.guests import needs

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

RATE = "50mbit"
PAIRS, STEPS, WARM_UP = 5, 10, 3
LEAST_SHARE, LEAST_THROUGHPUT = 0.85, 0.98
BATCH, SIDE = "8", "32"
IMAGE = "pytorch-horovod"  # has PyTorch and a Horovod of its own; what the others train with, all guests see
FOLDER = "/var/tmp/engines"
LINES = f"{FOLDER}/lines"
PORT = 29500
SYSTEM = "/usr"
# Each engine's environment in the guests.
RUNTIMES = {
    Engine.TENSORFLOW: f"{runtime.IN_GUESTS}/venv",
    Engine.PYTORCH: SYSTEM,
    Engine.PYTORCH_HOROVOD: SYSTEM,
    Engine.JAX: f"{runtime.IN_GUESTS}/{jax.VENV}",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Methods:
    """The two ways to start an engine."""

    site: Site
    engine: Engine
    steps: int

    @property
    def python(self) -> str:
        return f"{RUNTIMES[self.engine]}/bin/python"

    @property
    def program(self) -> tuple[str, ...]:
        """What each rank executes, as `vsml bench` has it too."""
        row, options = ENGINES[self.engine], ("--model", "small", "--batch", BATCH, "--image", SIDE)
        backend = ("--backend", "gloo") if row.takes_backend else ()
        train = (self.python, f"{FOLDER}/train.py", "--engine", row.module)
        return (*train, *options, "--steps", str(self.steps), *backend)

    def ours(self, number: int) -> float:
        """Return the seconds of a step under `vsml bench`."""
        folder = self.site.folder
        settings = f'runtime_path = "{RUNTIMES[self.engine]}"\n'
        if self.engine is Engine.TENSORFLOW:  # its Horovod was built with this one, PyTorch's with Debian's
            settings += f'mpirun = "{launches.MPI}/bin/mpirun"\n'
        file = folder / "cluster.toml"
        file.write_text(CLUSTER.format(name="engines", nodes=len(self.site.targets)) + settings)
        asked = ("--engine", self.engine, "--nodes", str(len(self.site.targets)), "--repeats", "1", "--ci-target", "0")
        of_train = ("--batch", BATCH, "--image-size", SIDE, "--steps", str(self.steps))
        answers = vsml("bench", str(file), *asked, *of_train, "--results", str(self.record(number)))
        (run,) = answers["data"]["runs"]
        if any(each["verdict"] != "yes" for each in run["proofs"]):
            raise SystemExit(f"{self.engine}: not proven: {run['proofs']}")
        return self._mean("ours", run["steps"]["step_s"][0])

    def bare(self, number: int) -> float:
        """Return the seconds of a step under the engine's launcher alone."""
        started = [self.site.start(node, command) for node, command in self._commands(number)]
        for each in started:
            out, err = each.communicate()
            if each.returncode:
                raise SystemExit(f"{self.engine}: the bare launcher failed:\n{out}\n{err}")
        lines = map(json.loads, self.site.say("node-1", f"cat {LINES}").splitlines())
        for node in self.site.targets:
            self.site.say(node, f"rm -f {LINES}")
        return self._mean("bare", [line["seconds"] for line in lines if line["kind"] == "step"])

    def record(self, number: int) -> Path:
        return self.site.folder / f"{self.engine}-{number}"

    def _commands(self, number: int) -> Iterator[tuple[str, str]]:
        """Yield what is started by hand on which node: Horovod's launcher on one, else something on each."""
        launcher = ENGINES[self.engine].launchers[0]
        if launcher is LauncherName.HOROVODRUN:
            yield "node-1", self._command(*launches.horovodrun(self.site, self.python), *self.program)
            return
        first, port = next(iter(self.site.targets.values())).host, str(PORT + number)
        nodes = len(self.site.targets)
        for rank, node in enumerate(self.site.targets):
            if launcher is LauncherName.TORCHRUN:
                place = ("--nnodes", str(nodes), "--node_rank", str(rank), "--nproc_per_node", "1")
                # Of PyTorch 1.13 under Python 3.11: it does not start unless outputs are kept.
                meet = ("--master_addr", first, "--master_port", port, "-r", "1", "-t", "1", "--no_python")
                yield node, self._command(self.python, "-m", "torch.distributed.run", *place, *meet, *self.program)
            else:
                own = (f"MASTER_ADDR={first}", f"MASTER_PORT={port}", f"WORLD_SIZE={nodes}", f"RANK={rank}")
                yield node, self._command("env", *own, "LOCAL_RANK=0", *self.program)

    def _command(self, *words: str) -> str:
        mpi = launches.MPI if self.engine is Engine.TENSORFLOW else SYSTEM
        own = (*launches.variables(self.python, mpi), f"VSML_BENCH_FILE={LINES}", "GLOO_SOCKET_IFNAME=eth0")
        return shlex.join(["env", "-i", *own, *words])

    def _mean(self, name: str, steps: list[float]) -> float:
        if len(steps) != self.steps:
            raise SystemExit(f"{self.engine}, {name}: {len(steps)} steps of {self.steps} were told")
        mean = statistics.fmean(steps[min(WARM_UP, self.steps - 1) :])
        print(f"  {name}: a step takes {mean * 1e3:.1f} ms", flush=True)
        return mean


def share_of_bound(record: Path) -> float:
    """Return the bound of a step as a share of its time, as the record has both."""
    (point,) = (each.point for each in study(store.read(record)).scalings)
    asked, rate = point.configuration, point.link.bytes_per_s if point.configuration.ranks > 1 else math.inf
    if rate is None or asked.parameters is None:
        raise SystemExit(f"{record}: the link was not measured")
    exchange = ring_s(gradient_bytes(asked.parameters, asked.gradients), asked.ranks, rate)
    computing = max(each.compute_s for run in point.runs if run.steps for each in step_parts(run.steps, WARM_UP))
    return max(exchange, computing) / point.step.value


def measured(methods: Methods, pairs: int) -> bool:
    """Start an engine both ways in turn, and say what of it is within its limits."""
    print(f"\n{methods.engine}, guests: {len(methods.site.targets)}")
    if pairs == 0:
        methods.ours(1)
        return near_bound(methods, 1)
    methods.bare(0)  # the first reads the libraries from the disk
    seconds = launches.in_turn(pairs, methods.bare, methods.ours)
    return near_bound(methods, pairs) & launches.throughput(seconds, LEAST_THROUGHPUT, low=True)


def near_bound(methods: Methods, count: int) -> bool:
    """Print the share of the bound of so many launches, and return whether their median is enough."""
    shares = [share_of_bound(methods.record(number)) for number in range(1, count + 1)]
    median = statistics.median(shares)
    near = median >= LEAST_SHARE
    print(
        f"  share of the bound: {median:.3f} ({min(shares):.3f} to {max(shares):.3f}), limit {LEAST_SHARE}: "
        f"{'kept' if near else 'NOT kept'}",
        flush=True,
    )
    return near


def write_site(folder: Path, engines: Collection[Engine]) -> Path:
    """Write the site, whose guests have what these engines want in their image."""
    template = 'name = "ubuntu-22.04-gpu"\n'
    own = f'image = "{IMAGE}"\n' if any(RUNTIMES[each] == SYSTEM for each in engines) else ""
    site = folder / "engines.toml"
    site.write_text((HERE / "sixteen.toml").read_text().replace(template, template + own))
    return site


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--engine", action="append", type=Engine, choices=[*Engine], help="this one only; repeatable")
    parser.add_argument("--nodes", type=int, choices=(1, 2, 3, 4), default=2)
    parser.add_argument("--pairs", type=int, default=PAIRS, help="0: the share of the bound alone")
    parser.add_argument("--steps", type=int, default=STEPS)
    return parser.parse_args()


def main() -> int:
    given = arguments()
    if missing := needs.missing_need() or runtime.missing_need():
        print(f"cannot run: {missing}", file=sys.stderr)
        return 1
    engines = given.engine or [*Engine]
    (jax.make_jax if Engine.JAX in engines else runtime.make_runtime)()
    print(f"{machine()}, links of {RATE}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with running(str(write_site(folder, engines)), guests=True):
            site = launches.made(folder, CLUSTER.format(name="engines", nodes=given.nodes))
            site.bring({f"{FOLDER}/{each.name}": each for each in WORKLOADS.glob("*.py")})
            subprocess.run([VSML, "lab", "shape", "--rate", RATE, "--name", "bench"], check=True)
            methods = [Methods(site=site, engine=each, steps=given.steps) for each in engines]
            kept = [measured(each, given.pairs) for each in methods]
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
