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
    OnlyNodes,
    Parallel,
    SkipGuests,
    Wait,
    Yes,
    command,
    option_group,
)
from vsphere_ml.cli.terminal import Answer, Terminal

if TYPE_CHECKING:
    from collections.abc import Collection

    from vsphere_ml.cli.views.cluster.proposal import ProposalData
    from vsphere_ml.cli.views.cluster.report import ReportData
    from vsphere_ml.flows.cluster.proposal import Proposal
    from vsphere_ml.flows.cluster.provision import ProvisionTask
    from vsphere_ml.flows.cluster.saved import SavedPlan


@option_group
class _ProvisionOptions:
    """The options of `vsml provision`."""

    yes: Yes = False
    dry_run: DryRun = False
    only: OnlyNodes = None
    plan: Annotated[
        Path | None, typer.Option(metavar="PLAN", help="Carry out this saved plan, or nothing when the site moved on.")
    ] = None
    parallel: Parallel = 64
    wait: Wait = 600.0
    skip_guests: SkipGuests = False
    allow_downtime: Annotated[bool, typer.Option("--allow-downtime", help="Allow to stop VMs that run.")] = False
    allow_delete: Annotated[
        bool,
        typer.Option("--allow-delete", help="Delete VMs whose nodes left the file without asking for their names."),
    ] = False
    detailed_exitcode: DetailedExitcode = False
    rolling: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Stop at most N running VMs at a time, each verified before the next."),
    ] = None

    def task(self, terminal: Terminal, agreed: SavedPlan | None) -> ProvisionTask:
        """Return what the run is asked for, and what it may do without asking."""
        from vsphere_ml.cli import consent
        from vsphere_ml.flows.cluster.executor import ApplyLimits
        from vsphere_ml.flows.cluster.provision import ProvisionTask
        from vsphere_ml.flows.consent import Consent

        allowed = Consent(
            downtime=self.allow_downtime,
            deletion=self.allow_delete or (terminal.interactive and not self.yes),
            confirmed=consent.is_confirmed(terminal, yes=self.yes),
        )
        return ProvisionTask(
            rate=ApplyLimits(parallel=self.parallel),
            consent=allowed,
            dry_run=self.dry_run,
            saved=agreed,
            rolling=self.rolling or 0,
        )

    def impact(self, found: Proposal) -> str:
        """Return what the changes stop, reboot and delete, and for how long at most."""
        from vsphere_ml.cli.views.cluster.impact import impact_of_plan
        from vsphere_ml.flows.cluster.executor import ApplyLimits

        return impact_of_plan(found.plan, self.rolling or 0, ApplyLimits(parallel=self.parallel))


@command
def provision(
    terminal: Terminal, file: ClusterFile = DEFAULT_FILE, *, given: _ProvisionOptions
) -> Answer["ReportData | ProposalData"]:
    """Create or update the cluster to match the file, then configure its guests.

    Reads the site, shows the plan, asks, applies it and verifies. Existing nodes are kept, an interrupted run is
    resumed, and a second run changes nothing. VMs that are no longer in the file are deleted after you typed their
    names, or with `--allow-delete`. With `--only`, all other nodes and such VMs are left unchanged.

    Example: `vsml provision cluster.toml`, or with `--yes` in a script
    """
    from vsphere_ml.cli.wiring.cluster_file import load, reading_aside

    with reading_aside(file):
        import vsphere_ml.vsphere.gateway  # noqa: F401 - needed next
        from vsphere_ml.cli import consent
        from vsphere_ml.cli.views.cluster import proposal
        from vsphere_ml.cli.views.cluster import report as view
        from vsphere_ml.cli.views.progress.both_listeners import following_both
        from vsphere_ml.cli.wiring import guest_wiring, host_wiring, site_wiring
        from vsphere_ml.cli.wiring.journal import journal_changes, open_journal
        from vsphere_ml.core.nodes.selection import select_nodes
        from vsphere_ml.core.plan.deletions import deleted_vms
        from vsphere_ml.flows.cluster import saved
        from vsphere_ml.flows.cluster.provision import provision as bring
        from vsphere_ml.flows.run_context import RunContext

    agreed = saved.load(site_wiring.read(given.plan), str(given.plan)) if given.plan else None
    spec = select_nodes(load(file), given.only or (agreed.only if agreed else ()))

    def approve(found: Proposal) -> bool:
        agreed = ask(found)
        guest_wiring.forget(spec, found.plan.changes)
        return agreed

    def to_type(found: Proposal) -> Collection[str]:
        return () if given.allow_delete else deleted_vms(found.plan.changes)

    journal = open_journal(spec, "provision")
    clock, verbose = site_wiring.SystemClock(), terminal.settings.verbose
    shown = partial(proposal.text, every_key=verbose)
    ask = consent.approval(terminal, shown, yes=given.yes, names=to_type, impact=given.impact)
    with following_both(terminal.err, verbose=verbose) as both:
        guest_config = guest_wiring.for_guests(
            spec, both.guests, clock, wait_s=given.wait, skip=given.skip_guests, rolling=given.rolling or 0
        )
        opened = host_wiring.connect_site(spec, terminal, journal, allow_downtime=given.allow_downtime)
        with opened as (vcenter, session):
            report = bring(
                RunContext(spec, journal_changes(vcenter, journal), both.site, clock),
                approve=both.before(approve),
                given=guest_config,
                task=given.task(terminal, agreed),
                session=session,
                show=both.before(lambda found: consent.show(terminal, shown(found), given.impact(found))),
            )
    return view.answer(report, dry_run=given.dry_run, detailed=given.detailed_exitcode, every_key=verbose)
