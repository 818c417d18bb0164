"""`vsml bench [cluster.toml]`: the benchmark itself."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from vsphere_ml.cli.bench.records.record import RECORDS
from vsphere_ml.cli.bench.run_options import BenchOptions, bench_spec, launch_settings
from vsphere_ml.cli.options import DEFAULT_FILE, ClusterFile, OnlyNodes, command
from vsphere_ml.cli.terminal import Answer, Terminal

if TYPE_CHECKING:
    from vsphere_ml.cli.views.bench.run import BenchRunData


@command
def run(
    terminal: Terminal, file: ClusterFile = DEFAULT_FILE, *, given: BenchOptions, only: OnlyNodes = None
) -> Answer["BenchRunData"]:
    """Measure Horovod across the cluster's nodes, and prove where it ran and that the ranks stayed in sync.

    Every launch is recorded when it has ended. Run it again with the same `--results` to make only the missing
    launches.

    Example: `vsml bench cluster.toml --workload train --workload allreduce --nodes 1-4`
    """
    from vsphere_ml.bench.model.job import RunIn
    from vsphere_ml.cli.views.bench import run as view
    from vsphere_ml.cli.wiring.bench_wiring import open_benchmark, open_pod_benchmark
    from vsphere_ml.cli.wiring.cluster_file import load
    from vsphere_ml.flows.bench.series import bench
    from vsphere_ml.flows.kubernetes.benchmark import bench_in_pods

    given.check()
    spec = load(file)
    settings = launch_settings(given, spec)
    asked = bench_spec(given, spec, len(only) if only else len(spec.nodes))
    folder = given.settings.into or RECORDS / f"{datetime.now(UTC):%Y-%m-%dT%H%M%S}"
    if given.matrix.within is RunIn.KUBERNETES:
        with open_pod_benchmark(terminal, spec, asked, settings, folder=folder, pods=given.pods) as pods:
            return view.answer(bench_in_pods(pods))
    with open_benchmark(terminal, spec, asked, settings, folder=folder, only=only or ()) as benchmark:
        done = bench(benchmark)
    return view.answer(done)
