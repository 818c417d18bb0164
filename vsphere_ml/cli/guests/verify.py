"""`vsml verify`: what is true of the finished nodes."""

from __future__ import annotations

from typing import Annotated

import typer

from vsphere_ml.cli.options import DEFAULT_FILE, ClusterFile, OnlyNodes, ParallelGuests, WaitOrNot, command
from vsphere_ml.cli.terminal import Answer, Terminal


@command
def verify(
    terminal: Terminal,
    file: ClusterFile = DEFAULT_FILE,
    *,
    only: OnlyNodes = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Fail also for facts that are `warning` or `unknown`.")
    ] = False,
    wait: WaitOrNot = 0.0,
    parallel: ParallelGuests = 32,
) -> Answer:
    """Ask every node what a training run needs to be true: GPU and licence, RDMA, GPUDirect, SSH mesh, clocks.

    Nothing is changed. Each fact comes with what was seen, and with `-v` the command that shows it again. A `warning`
    is what training can do without, such as ATS that is not enabled yet.

    Example: `vsml verify cluster.toml`
    """
    from vsphere_ml.cli.views.guests import verify as view
    from vsphere_ml.cli.views.progress.apply_progress import following_both
    from vsphere_ml.cli.wiring import guest_wiring, site_wiring
    from vsphere_ml.config.load import load
    from vsphere_ml.flows.guests.guests import GuestPhase, StepInputs
    from vsphere_ml.flows.guests.verify import verify as ask
    from vsphere_ml.flows.run_context import RunContext

    spec = load(file)
    clock = site_wiring.SystemClock()
    playbooks = guest_wiring.read_playbooks(spec)
    guests = guest_wiring.guests(spec, clock, parallel)
    with site_wiring.vcenter(spec.vcenter, terminal) as vcenter, following_both(terminal.err) as both:
        given = StepInputs(values=spec.guest.settings)
        seen = ask(
            RunContext(spec, vcenter, both.site, clock),
            GuestPhase(guests=guests, playbooks=playbooks, given=given, notify=both.guests, wait_s=wait),
            only=only or (),
            strict=strict,
        )
    errors = (seen.error,) if seen.error else ()
    return Answer(
        text=view.text(seen, commands=terminal.settings.verbose),
        data=view.data(seen),
        status=seen.error.status if seen.error else 0,
        errors=errors,
    )
