"""`vsml destroy`: takes away what vsml made."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from vsphere_ml.cli.options import DEFAULT_FILE, ClusterFile, DryRun, Parallel, Yes, command
from vsphere_ml.cli.terminal import Answer, Terminal


@command
def destroy(
    terminal: Terminal,
    file: ClusterFile = DEFAULT_FILE,
    *,
    yes: Yes = False,
    dry_run: DryRun = False,
    only: Annotated[
        list[str] | None, typer.Option(metavar="VM", help="Remove this VM only; can be given several times.")
    ] = None,
    parallel: Parallel = 16,
) -> Answer:
    """Remove the cluster's VMs, rule and folder: what carries its mark, and nothing else.

    The plan is shown and confirmed first.

    Example: `vsml destroy cluster.toml`
    """
    from vsphere_ml.cli import consent, wiring
    from vsphere_ml.cli.views import plan as plans
    from vsphere_ml.cli.views import report as view
    from vsphere_ml.cli.views.progress import following
    from vsphere_ml.config.load import load
    from vsphere_ml.flows.apply import Pace
    from vsphere_ml.flows.destroy import destroy as take_away

    if not dry_run:
        consent.needed(terminal, yes=yes)
    spec = load(file)
    shown = partial(plans.text, every_key=terminal.settings.verbose)
    with (
        wiring.vcenter(spec.vcenter, terminal) as vcenter,
        following(terminal.err, verbose=terminal.settings.verbose) as tell,
    ):
        report = take_away(
            spec,
            vcenter,
            approve=consent.approval(terminal, shown, yes=yes),
            tell=tell,
            clock=wiring.SystemClock(),
            pace=Pace(parallel=parallel),
            only=tuple(only or ()),
            dry_run=dry_run,
        )
    return view.answer(report, dry_run=dry_run, detailed=False)
