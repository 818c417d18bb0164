"""`vsml bench regimes`: one training by each regime, against what the link allows that regime."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from vsphere_ml.bench.network.regimes import Regime
from vsphere_ml.cli.bench.records.record import RECORDS
from vsphere_ml.cli.bench.run_options import Interface, LaunchLimit, LinkGbit, ResultsFolder
from vsphere_ml.cli.options import DEFAULT_FILE, ClusterFile, OnlyNodes, command, option_group
from vsphere_ml.cli.terminal import Answer, Terminal

if TYPE_CHECKING:
    from vsphere_ml.bench.launch.matrix import BenchSpec
    from vsphere_ml.cli.views.bench.run import BenchRunData
    from vsphere_ml.core.model.spec import ClusterSpec
    from vsphere_ml.flows.bench.launch import LaunchSettings

FLOAT = 4  # bytes


@option_group
class RegimeTrainingOptions:
    """What every regime trains, and on how many workers."""

    regime: Annotated[
        list[Regime] | None, typer.Option(help="Regime to train by; repeat the option for several. Default: all.")
    ] = None
    nodes: Annotated[
        list[str] | None,
        typer.Option(metavar="N,...", help="Numbers of nodes, such as 2-4; default: all nodes."),
    ] = None
    devices: Annotated[
        int, typer.Option(min=2, max=64, metavar="N", help="Workers of the regimes within one machine.")
    ] = 2
    servers: Annotated[
        int, typer.Option(min=2, max=1024, metavar="N", help="Servers of `sharded`, each beside a worker.")
    ] = 2
    megabytes: Annotated[
        float,
        typer.Option("--gradient-mbytes", min=0.01, max=4000, metavar="MB", help="Size of the gradients of one step."),
    ] = 4.0
    batch: Annotated[int, typer.Option(min=1, max=65536, metavar="N", help="Batch size per worker and step.")] = 16
    samples: Annotated[
        int,
        typer.Option(min=1, max=10_000_000, metavar="N", help="Samples that each regime trains on, by all workers."),
    ] = 1920


@option_group
class RegimeLaunchOptions:
    """How launches are made, and where the record goes."""

    repeats: Annotated[int, typer.Option(min=1, metavar="N", help="Launches per regime and number of nodes.")] = 3
    interface: Interface = ""
    link_gbit: LinkGbit = None
    limit: LaunchLimit = 3600.0
    into: ResultsFolder = None


@command
def regimes(
    terminal: Terminal,
    file: ClusterFile = DEFAULT_FILE,
    *,
    given: RegimeTrainingOptions,
    how: RegimeLaunchOptions,
    only: OnlyNodes = None,
) -> Answer["BenchRunData"]:
    """Train one model by seven regimes, and hold each against its own bound: parameter servers, all-reduces, one GPU.

    Model, samples and their order are the same in all, on the nodes' CPUs; what differs is the exchange. Each launch
    is proven and recorded as those of `vsml bench run`. `vsml bench report RECORD --html FILE` draws what goes where.

    Example: `vsml bench regimes cluster.toml --nodes 2-4 --regime ring --regime sync`
    """
    from vsphere_ml.cli.views.bench import run as view
    from vsphere_ml.cli.wiring.bench_wiring import open_benchmark
    from vsphere_ml.cli.wiring.cluster_file import load
    from vsphere_ml.flows.bench.series import bench

    spec = load(file)
    asked = bench_spec(given, how, len(only) if only else len(spec.nodes))
    settings = launch_settings(how, spec)
    folder = how.into or RECORDS / f"regimes-{datetime.now(UTC):%Y-%m-%dT%H%M%S}"
    with open_benchmark(terminal, spec, asked, settings, folder=folder, only=only or ()) as benchmark:
        done = bench(benchmark)
    return view.answer(done)


def bench_spec(given: RegimeTrainingOptions, how: RegimeLaunchOptions, most: int) -> BenchSpec:
    """Return what to measure on at most so many nodes; regimes in one machine are measured once."""
    from vsphere_ml.bench.launch.matrix import BenchSpec
    from vsphere_ml.bench.model.record import Workload
    from vsphere_ml.bench.predict.arguments import check_finite, node_counts

    check_finite(given.megabytes, how.limit, how.link_gbit)
    options = {"parameters": str(round(given.megabytes * 1e6 / FLOAT)), "samples": str(given.samples)}
    return BenchSpec(
        workloads=(Workload.REGIMES,),
        nodes=node_counts(",".join(given.nodes)) if given.nodes else (most,),
        regimes=tuple(given.regime or Regime),
        devices=given.devices,
        servers=given.servers,
        batch=given.batch,
        repeats=how.repeats,
        options={Workload.REGIMES: options},
    )


def launch_settings(how: RegimeLaunchOptions, spec: ClusterSpec) -> LaunchSettings:
    """Return how launches are made: all their steps, since a regime's loss is that after all samples."""
    from dataclasses import replace

    from vsphere_ml.bench.model.job import RunIn
    from vsphere_ml.cli.bench.launch_settings import launch_settings
    from vsphere_ml.cli.bench.origin import origin
    from vsphere_ml.flows.bench.watch import Enough

    made = launch_settings(spec, RunIn.GUEST, how.interface, how.limit)
    return replace(made, enough=Enough(half_width=0.0), origin=origin(spec.file, how.link_gbit))
