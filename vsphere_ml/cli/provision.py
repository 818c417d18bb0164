"""`vsml provision`: brings the site to what the file says."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vsphere_ml.cli.options import (
    DEFAULT_FILE,
    ClusterFile,
    DetailedExitcode,
    DryRun,
    Parallel,
    SkipGuests,
    Wait,
    Yes,
    command,
)
from vsphere_ml.cli.terminal import Answer, Terminal

if TYPE_CHECKING:
    from vsphere_ml.flows.proposal import Proposal


@command
def provision(
    terminal: Terminal,
    file: ClusterFile = DEFAULT_FILE,
    *,
    yes: Yes = False,
    dry_run: DryRun = False,
    plan: Annotated[
        Path | None, typer.Option(metavar="PLAN", help="Carry out this saved plan, or nothing when the site moved on.")
    ] = None,
    parallel: Parallel = 16,
    wait: Wait = 600.0,
    skip_guests: SkipGuests = False,
    allow_downtime: Annotated[bool, typer.Option("--allow-downtime", help="Allow to stop VMs that run.")] = False,
    detailed_exitcode: DetailedExitcode = False,
) -> Answer:
    """Bring the site to what the cluster file says, and the guests to its playbooks.

    Looks, shows the plan, asks, acts, looks again. What stands already is kept, a run that was cut is gone on with,
    and a second run finds nothing to do.

    Example: `vsml provision cluster.toml`, or with `--yes` where nobody can be asked
    """
    from vsphere_ml.cli import consent, guest_wiring, host_wiring, wiring
    from vsphere_ml.cli.views import proposal
    from vsphere_ml.cli.views import report as view
    from vsphere_ml.cli.views.progress import following_both
    from vsphere_ml.config.load import load
    from vsphere_ml.flows import saved
    from vsphere_ml.flows.apply import Pace
    from vsphere_ml.flows.provision import provision as bring

    if not dry_run:
        consent.needed(terminal, yes=yes)
    spec = load(file)
    agreed = saved.load(wiring.read(plan), str(plan)) if plan else None

    def say(found: Proposal) -> None:
        terminal.say(shown(found))

    clock, shown = wiring.SystemClock(), partial(proposal.text, every_key=terminal.settings.verbose)
    with following_both(terminal.err, verbose=terminal.settings.verbose) as told:
        given = guest_wiring.for_guests(spec, told.guests, clock, wait_s=wait, skip=skip_guests)
        with host_wiring.vcenter_and_door(spec, terminal, allow_downtime=allow_downtime) as (vcenter, door):
            report = bring(
                spec,
                vcenter,
                approve=told.before(consent.approval(terminal, shown, yes=yes)),
                tell=told.site,
                clock=clock,
                given=given,
                pace=Pace(parallel=parallel),
                allow_downtime=allow_downtime,
                dry_run=dry_run,
                saved=agreed,
                door=door,
                show=told.before(say),
            )
    return view.answer(report, dry_run=dry_run, detailed=detailed_exitcode, every_key=terminal.settings.verbose)
