"""`vsml plan`: what would be done."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vsphere_ml.cli.options import DEFAULT_FILE, ClusterFile, DetailedExitcode, command
from vsphere_ml.cli.terminal import Answer, Terminal


@command
def plan(
    terminal: Terminal,
    file: ClusterFile = DEFAULT_FILE,
    *,
    save: Annotated[
        Path | None, typer.Option(metavar="PLAN", help="Also write the plan to this file, for `vsml provision --plan`.")
    ] = None,
    detailed_exitcode: DetailedExitcode = False,
) -> Answer:
    """Show what `vsml provision` would do, and change nothing.

    Example: `vsml plan cluster.toml --save monday.plan`
    """
    from vsphere_ml.cli import exits, wiring
    from vsphere_ml.cli.views import plan as view
    from vsphere_ml.cli.views.progress import following
    from vsphere_ml.config.load import load
    from vsphere_ml.flows.plan import plan as make_plan
    from vsphere_ml.flows.saved import save as saved_text

    spec = load(file)
    with wiring.vcenter(spec.vcenter, terminal) as vcenter, following(terminal.err) as tell:
        planned = make_plan(spec, vcenter, tell=tell, clock=wiring.SystemClock())
    if save is not None:
        wiring.write(save, saved_text(planned.plan, spec, planned.inventory))
        terminal.say(f"saved the plan; carry it out with: vsml provision {file} --plan {save}")
    status = exits.DIFFERENCES if detailed_exitcode and planned.plan else 0
    text = view.text(planned.plan, every_key=terminal.settings.verbose)
    return Answer(text=text, data=view.data(planned.plan), status=status)
