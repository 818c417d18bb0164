"""`vsml bench import`: other tools' logs as a record."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypedDict

import typer

from vsphere_ml.bench.model.transports import Transport
from vsphere_ml.cli import completion
from vsphere_ml.cli.options import command, option_group
from vsphere_ml.cli.terminal import Answer, Terminal

if TYPE_CHECKING:
    from vsphere_ml.bench.imports.parsed import ImportOptions
    from vsphere_ml.bench.model.record import Run

Logs = Annotated[list[Path], typer.Argument(metavar="LOG...", help="Output of one run each.")]
Into = Annotated[Path, typer.Option("--results", metavar="FOLDER", help="Results folder to write.")]


class _ImportedRunsData(TypedDict):
    """The launches that logs have, and the documents that were written of them."""

    record: Path
    documents: list[Path]
    runs: tuple[Run, ...]


@option_group
class _ImportOptions:
    """What logs do not say."""

    nodes: Annotated[int | None, typer.Option(min=1, metavar="N", help="Nodes, where the log does not say.")] = None
    ranks: Annotated[int | None, typer.Option(min=1, metavar="N", help="Ranks, where the log does not say.")] = None
    parameters: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Parameters of a model that is not known.")
    ] = None
    link_gbit: Annotated[
        float | None, typer.Option("--link-gbit", min=0.001, max=1e6, metavar="GBIT", help="Line rate of one NIC.")
    ] = None
    nics: Annotated[int, typer.Option(min=1, max=64, metavar="N", help="NICs of one node.")] = 1
    mtu: Annotated[int | None, typer.Option(min=576, max=9216, metavar="BYTES", help="Ethernet MTU.")] = None
    transport: Annotated[
        Transport,
        typer.Option("--transport", metavar="tcp|roce|gpudirect", help="What the bytes between nodes went by."),
    ] = Transport.TCP
    cluster: Annotated[str, typer.Option("--cluster", metavar="NAME", help="Where it was measured.")] = ""
    collective: Annotated[
        str,
        typer.Option(
            "--collective",
            metavar="NAME",
            help="all_gather or another, where an nccl-tests log fits several.",
            autocompletion=completion.collectives,
        ),
    ] = ""
    data_type: Annotated[
        str, typer.Option("--data-type", metavar="TYPE", help="Which of several in one table, as float.")
    ] = ""
    reduction: Annotated[
        str, typer.Option("--reduction", metavar="NAME", help="Which of several in one table, as sum.")
    ] = ""

    def given(self) -> ImportOptions:
        """Return it as the readers take it."""
        from vsphere_ml.bench.imports.parsed import ImportOptions
        from vsphere_ml.bench.model.record import Link
        from vsphere_ml.bench.predict.arguments import check_finite
        from vsphere_ml.bench.predict.arguments import collective as known_collective

        check_finite(self.link_gbit)
        rate = None if self.link_gbit is None else self.link_gbit * 1e9
        return ImportOptions(
            cluster=self.cluster,
            nodes=self.nodes,
            ranks=self.ranks,
            parameters=self.parameters,
            transport=self.transport,
            collective=known_collective(self.collective),
            data_type=self.data_type,
            reduction=self.reduction,
            link=Link(line_rate_bits_per_s=rate, nics=self.nics, mtu_bytes=self.mtu),
        )


@command
def import_(terminal: Terminal, logs: Logs, into: Into, *, options: _ImportOptions) -> Answer[_ImportedRunsData]:
    """Read logs of other tools into a record, so that they get bounds, intervals and comparisons.

    Known are nccl-tests (all its collectives, table and `-J`), Horovod's synthetic benchmarks, tf_cnn_benchmarks,
    iperf3 (text and `-J`), osu_allreduce and perftest's ib_write_bw, ib_read_bw and ib_send_bw. What a launcher or log
    collector puts before each line is ignored. What a log does not say has to be given.

    Example: `vsml bench import run-*.log --results bench/old --nodes 2 --link-gbit 100 --transport roce`
    """
    from vsphere_ml.bench.imports.files import import_logs
    from vsphere_ml.bench.records import store
    from vsphere_ml.cli.bench.files import modified_time, pieces
    from vsphere_ml.cli.views.bench import imports as view

    given = options.given()
    runs = import_logs([(str(log), pieces(log), modified_time(log)) for log in logs], given)
    written = [store.write(run, into) for run in runs]
    terminal.say(f"wrote {len(written)} to {into}; now: vsml bench report {into}")
    return Answer(text=view.text(runs), data={"record": into, "documents": written, "runs": runs})
