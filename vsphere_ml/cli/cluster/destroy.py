"""`vsml destroy`: takes away what vsml made."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from vsphere_ml.cli import completion
from vsphere_ml.cli.options import DEFAULT_FILE, ClusterFile, DryRun, Parallel, Yes, command
from vsphere_ml.cli.terminal import Answer, Terminal

if TYPE_CHECKING:
    from vsphere_ml.cli.views.cluster.proposal import ProposalData
    from vsphere_ml.cli.views.cluster.report import ReportData
    from vsphere_ml.core.plan.plan import Plan


@command
def destroy(
    terminal: Terminal,
    file: ClusterFile = DEFAULT_FILE,
    *,
    yes: Yes = False,
    dry_run: DryRun = False,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="VM", help="Remove this VM only; can be given several times.", autocompletion=completion.nodes
        ),
    ] = None,
    parallel: Parallel = 64,
) -> Answer["ReportData | ProposalData"]:
    """Remove the cluster's VMs, rule and folder: what carries its mark, and nothing else.

    The plan is shown and confirmed first.

    Example: `vsml destroy cluster.toml`
    """
    from vsphere_ml.cli import consent
    from vsphere_ml.cli.views.cluster import plan as plans
    from vsphere_ml.cli.views.cluster import report as view
    from vsphere_ml.cli.views.cluster.impact import impact_of_plan
    from vsphere_ml.cli.views.progress.apply_progress import show_apply_progress
    from vsphere_ml.cli.wiring import guest_wiring, site_wiring
    from vsphere_ml.cli.wiring.cluster_file import load
    from vsphere_ml.cli.wiring.journal import journal_changes, open_journal
    from vsphere_ml.flows.cluster.destroy import destroy as take_away
    from vsphere_ml.flows.cluster.executor import ApplyLimits
    from vsphere_ml.flows.run_context import RunContext

    spec = load(file)
    shown = partial(plans.text, every_key=terminal.settings.verbose)
    ask = consent.approval(terminal, shown, yes=yes, impact=impact_of_plan)

    def approve(plan: Plan) -> bool:
        agreed = ask(plan)
        guest_wiring.forget(spec, plan.changes)
        return agreed

    with (
        site_wiring.vcenter(spec.vcenter, terminal) as vcenter,
        show_apply_progress(terminal.err, verbose=terminal.settings.verbose) as notify,
    ):
        watched = journal_changes(vcenter, open_journal(spec, "destroy"))
        report = take_away(
            RunContext(spec, watched, notify, site_wiring.SystemClock()),
            approve=approve,
            rate=ApplyLimits(parallel=parallel),
            only=tuple(only or ()),
            dry_run=dry_run,
        )
    return view.answer(report, dry_run=dry_run, detailed=False)
