"""The sub-commands of `vsml job`."""

from __future__ import annotations

from vsphere_ml.cli.commands import App, FileFirst
from vsphere_ml.cli.jobs import fetch, list_jobs, logs, run, stop

app = App(no_args_is_help=True, help="Run a training of your own across the cluster's nodes, and find it again.")
app.command(cls=FileFirst)(run.run)
app.command("list")(list_jobs.list_jobs)
app.command(cls=FileFirst)(logs.logs)
app.command(cls=FileFirst)(stop.stop)
app.command(cls=FileFirst)(fetch.fetch)
