"""`vsml bench import`: other tools' logs as a record."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vsphere_ml.cli.options import command
from vsphere_ml.cli.terminal import Answer, Terminal

Logs = Annotated[list[Path], typer.Argument(metavar="LOG...", help="Output of one run each.")]
Into = Annotated[Path, typer.Option("--into", metavar="FOLDER", help="The record to write to.")]
Nodes = Annotated[int | None, typer.Option(min=1, metavar="N", help="Nodes, where the log does not say.")]
Ranks = Annotated[int | None, typer.Option(min=1, metavar="N", help="Ranks, where the log does not say.")]
Parameters = Annotated[int | None, typer.Option(min=1, metavar="N", help="Parameters of a model that is not known.")]
LinkGbit = Annotated[
    float | None, typer.Option("--link-gbit", min=0.001, max=1e6, metavar="GBIT", help="Line rate of one NIC.")
]
Nics = Annotated[int, typer.Option(min=1, max=64, metavar="N", help="NICs of one node.")]
Mtu = Annotated[int | None, typer.Option(min=576, max=9216, metavar="BYTES", help="Ethernet MTU.")]
TransportOption = Annotated[
    str, typer.Option("--transport", metavar="tcp|roce|gpudirect", help="What the bytes between nodes went by.")
]
Collective = Annotated[
    str,
    typer.Option("--collective", metavar="NAME", help="all_gather or another, where an nccl-tests log fits several."),
]
DataType = Annotated[str, typer.Option("--data-type", metavar="TYPE", help="Which of several in one table, as float.")]
Reduction = Annotated[str, typer.Option("--reduction", metavar="NAME", help="Which of several in one table, as sum.")]
ClusterName = Annotated[str, typer.Option("--cluster", metavar="NAME", help="Where it was measured.")]


@command
def import_(  # noqa: PLR0917 - options
    terminal: Terminal,
    logs: Logs,
    into: Into,
    nodes: Nodes = None,
    ranks: Ranks = None,
    parameters: Parameters = None,
    link_gbit: LinkGbit = None,
    nics: Nics = 1,
    mtu: Mtu = None,
    transport: TransportOption = "tcp",
    cluster: ClusterName = "",
    collective: Collective = "",
    data_type: DataType = "",
    reduction: Reduction = "",
) -> Answer:
    """Read logs of other tools into a record, so that they get bounds, intervals and comparisons.

    Known are nccl-tests (all its collectives, table and `-J`), Horovod's synthetic benchmarks, tf_cnn_benchmarks,
    iperf3 (text and `-J`), osu_allreduce and perftest's ib_write_bw, ib_read_bw and ib_send_bw. What a launcher or log
    collector puts before each line is ignored. What a log does not say has to be given.

    Example: `vsml bench import run-*.log --into bench/old --nodes 2 --link-gbit 100 --transport roce`
    """
    from vsphere_ml.bench.imports.files import import_logs
    from vsphere_ml.bench.imports.reading import Given
    from vsphere_ml.bench.model.record import Link
    from vsphere_ml.bench.predict.arguments import collective as known_collective
    from vsphere_ml.bench.predict.arguments import transport as known_transport
    from vsphere_ml.bench.records import store
    from vsphere_ml.cli.bench.files import modified_time, pieces
    from vsphere_ml.cli.views.bench import imports as view

    given = Given(
        cluster=cluster,
        nodes=nodes,
        ranks=ranks,
        parameters=parameters,
        transport=known_transport(transport),
        collective=known_collective(collective),
        data_type=data_type,
        reduction=reduction,
        link=Link(line_rate_bits_per_s=None if link_gbit is None else link_gbit * 1e9, nics=nics, mtu_bytes=mtu),
    )
    runs = import_logs([(str(log), pieces(log), modified_time(log)) for log in logs], given)
    written = [store.write(run, into) for run in runs]
    terminal.say(f"wrote {len(written)} to {into}; now: vsml bench report {into}")
    return Answer(text=view.text(runs), data={"record": into, "documents": written, "runs": list(runs)})
