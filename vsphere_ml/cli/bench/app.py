"""The sub-commands of `vsml bench`. A new one is a file beside this one and a line here."""

from __future__ import annotations

from vsphere_ml.cli.bench import check, predict, published, run, selftest
from vsphere_ml.cli.bench.group import BenchGroup
from vsphere_ml.cli.bench.records import baseline, compare, explain, gate, import_, report
from vsphere_ml.cli.bench.regimes import regimes
from vsphere_ml.cli.bench.studies import study
from vsphere_ml.cli.commands import App

app = App(
    cls=BenchGroup,
    no_args_is_help=True,
    help="Benchmark Horovod across the cluster's VMs, and say what the figures mean.",
)
app.command()(run.run)
app.command()(study.study)
app.command()(regimes.regimes)
app.command()(check.check)
app.command()(predict.predict)
app.command()(report.report)
app.command()(explain.explain)
app.command()(compare.compare)
app.command()(gate.gate)
app.add_typer(baseline.app, name="baseline")
app.command("import")(import_.import_)
app.command("published")(published.list_published)
app.command()(selftest.selftest)
