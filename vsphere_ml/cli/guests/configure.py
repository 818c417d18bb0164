"""`vsml configure`: brings the guests to their playbooks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from vsphere_ml.cli import completion
from vsphere_ml.cli.options import (
    DEFAULT_FILE,
    ClusterFile,
    DryRun,
    OnlyNodes,
    ParallelGuests,
    Wait,
    Yes,
    command,
    option_group,
)
from vsphere_ml.cli.terminal import Answer, Terminal

if TYPE_CHECKING:
    from vsphere_ml.cli.views.guests.guests import ConfigureData
    from vsphere_ml.flows.guests.configure import GuestPlan


@option_group
class _ConfigureOptions:
    yes: Yes = False
    dry_run: DryRun = False
    only: OnlyNodes = None
    step: Annotated[
        list[str] | None,
        typer.Option(
            metavar="STEP",
            help="This step only, by kind, title, or number as `base:3`; repeatable.",
            autocompletion=completion.steps,
        ),
    ] = None
    from_step: Annotated[
        str | None, typer.Option(metavar="STEP", help="This step and those after it.", autocompletion=completion.steps)
    ] = None
    wait: Wait = 300.0
    parallel: ParallelGuests = 32
    rolling: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Work on at most N guests at a time, each verified before the next: some reboot.",
        ),
    ] = None


@command
def configure(
    terminal: Terminal, file: ClusterFile = DEFAULT_FILE, *, given: _ConfigureOptions
) -> Answer["ConfigureData"]:
    """Run the cluster file's playbooks in the guests of running VMs, over SSH.

    Every playbook is validated before a guest is changed. Shows what is missing, asks, applies it and checks again; a
    second run changes nothing. `vsml provision` includes this; use `configure` for existing VMs, including ones vsml
    did not create.

    Example: `vsml configure cluster.toml`, or `vsml configure --only node-3 --from-step hosts_file`
    """
    from vsphere_ml.cli import consent
    from vsphere_ml.cli.views.guests import guests as view
    from vsphere_ml.cli.views.progress.both_listeners import following_both
    from vsphere_ml.cli.wiring import guest_wiring, site_wiring
    from vsphere_ml.cli.wiring.cluster_file import load
    from vsphere_ml.flows.guests import configure as flow
    from vsphere_ml.flows.guests.guests import GuestPhase
    from vsphere_ml.flows.run_context import RunContext

    spec = load(file)
    playbooks = flow.choose_steps(guest_wiring.playbooks(spec), given.step or (), given.from_step)

    def impact(plan: GuestPlan) -> str:
        return view.impact(plan, given.rolling or 0)

    clock = site_wiring.SystemClock()
    guests = guest_wiring.guests(spec, clock, given.parallel)
    inputs = guest_wiring.step_inputs(spec, playbooks)
    with site_wiring.vcenter(spec.vcenter, terminal) as vcenter, following_both(terminal.err) as both:
        report = flow.configure(
            RunContext(spec, vcenter, both.site, clock),
            GuestPhase(
                guests=guests,
                playbooks=playbooks,
                given=inputs,
                notify=both.guests,
                wait_s=given.wait,
                rolling=given.rolling or 0,
            ),
            approve=both.before(consent.approval(terminal, view.plan, yes=given.yes, impact=impact)),
            only=given.only or (),
            dry_run=given.dry_run,
        )
    return view.answer(report, dry_run=given.dry_run)
