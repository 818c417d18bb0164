"""`vsml plan`: what would be done."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vsphere_ml.cli.options import (
    DEFAULT_FILE,
    ClusterFile,
    DetailedExitcode,
    OnlyNodes,
    SkipGuests,
    command,
    option_group,
)
from vsphere_ml.cli.terminal import Answer, Terminal

if TYPE_CHECKING:
    from vsphere_ml.cli.views.cluster.proposal import ExplainedProposalData, ProposalData


@option_group
class _PlanOptions:
    only: OnlyNodes = None
    save: Annotated[
        Path | None, typer.Option(metavar="PLAN", help="Also write the plan to this file, for `vsml provision --plan`.")
    ] = None
    explain: Annotated[
        bool, typer.Option("--explain", help="Explain each node's placement, and why other hosts were rejected.")
    ] = False
    skip_guests: SkipGuests = False
    detailed_exitcode: DetailedExitcode = False


@command
def plan(
    terminal: Terminal, file: ClusterFile = DEFAULT_FILE, *, given: _PlanOptions
) -> Answer["ProposalData | ExplainedProposalData"]:
    """Show what `vsml provision` would do, to hosts, VMs and guests, and change nothing.

    Example: `vsml plan cluster.toml --save monday.plan`
    """
    from vsphere_ml.cli.wiring.cluster_file import load, reading_aside

    with reading_aside(file):
        from rich.console import Group

        import vsphere_ml.vsphere.gateway  # noqa: F401 - needed next
        from vsphere_ml.cli import exits
        from vsphere_ml.cli.views.cluster import explanation
        from vsphere_ml.cli.views.cluster import proposal as view
        from vsphere_ml.cli.views.progress.both_listeners import following_both
        from vsphere_ml.cli.wiring import guest_wiring, host_wiring, site_wiring
        from vsphere_ml.core.nodes.selection import select_nodes
        from vsphere_ml.core.placement import explain as explain_placement
        from vsphere_ml.flows.cluster.proposal import propose
        from vsphere_ml.flows.cluster.saved import save as saved_text
        from vsphere_ml.flows.run_context import RunContext

    spec = select_nodes(load(file), given.only or ())
    clock = site_wiring.SystemClock()
    with following_both(terminal.err) as both:
        phase = guest_wiring.for_guests(spec, both.guests, clock, skip=given.skip_guests)
        with host_wiring.connect_site(spec, terminal) as (vcenter, session):
            ready = None
            if session is not None:
                from vsphere_ml.flows.hosts.host_configuration import HostConfiguration

                ready = HostConfiguration(spec, session, clock)
            proposal = propose(RunContext(spec, vcenter, both.site, clock), given=phase, ready=ready)
    if given.save is not None:
        site_wiring.write(given.save, saved_text(proposal, spec))
        terminal.say(f"saved the plan; carry it out with: vsml provision {file} --plan {given.save}")
    differs = bool(proposal) or bool(proposal.plan.drift)
    status = exits.DIFFERENCES if given.detailed_exitcode and differs else 0
    text = view.text(proposal, every_key=terminal.settings.verbose)
    if not given.explain:
        return Answer(text=text, data=view.data(proposal), status=status)
    why = explain_placement.explain(proposal.solution)
    explained: ExplainedProposalData = {**view.data(proposal), "explained": why}
    return Answer(text=Group(explanation.text(why), text), data=explained, status=status)
