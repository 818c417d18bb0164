"""`vsml verify`: what is true of the finished nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from vsphere_ml.bench.model.job import RunIn
from vsphere_ml.cli.bench.run_options import PodOptions
from vsphere_ml.cli.options import (
    DEFAULT_FILE,
    ClusterFile,
    OnlyNodes,
    ParallelGuests,
    WaitOrNot,
    command,
    option_group,
)
from vsphere_ml.cli.terminal import Answer, Terminal
from vsphere_ml.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Collection

    from vsphere_ml.cli.views.guests.verify import VerifyData
    from vsphere_ml.core.model.spec import ClusterSpec
    from vsphere_ml.flows.guests.verify import Verification


@option_group
class _VerifyOptions:
    """Where nodes are asked, and what counts as an error."""

    strict: Annotated[bool, typer.Option("--strict", help="Fail also for facts that are `warning` or `unknown`.")] = (
        False
    )
    wait: WaitOrNot = 0.0
    parallel: ParallelGuests = 32
    within: Annotated[
        RunIn, typer.Option("--run-in", "--in", help="Ask the guests with their containers, or Kubernetes' nodes.")
    ] = RunIn.GUEST
    pods: PodOptions


@command
def verify(
    terminal: Terminal, file: ClusterFile = DEFAULT_FILE, *, only: OnlyNodes = None, given: _VerifyOptions
) -> Answer["VerifyData"]:
    """Ask every node what a training run needs to be true: GPU and licence, RDMA, GPUDirect, SSH mesh, clocks.

    Nothing is changed. Each fact comes with what was seen, and with `-v` the command that shows it again. A `warning`
    is what training can do without, such as ATS that is not enabled yet.

    With `--run-in kubernetes` the operators and nodes of the kubeconfig's cluster are asked, and a pod on each node,
    which is removed.

    Example: `vsml verify cluster.toml`
    """
    from vsphere_ml.cli.views.guests import verify as view
    from vsphere_ml.cli.wiring.cluster_file import load

    spec = load(file)
    if given.within is RunIn.KUBERNETES:
        seen = _verify_pods(terminal, spec, given, only or ())
    elif given.within is RunIn.GUEST:
        seen = _verify_guests(terminal, spec, given, only or ())
    else:
        raise ConfigError(
            "guests are asked about their containers anyway", code="usage", hint="leave out --run-in container"
        )
    errors = (seen.error,) if seen.error else ()
    return Answer(
        text=view.text(seen, commands=terminal.settings.verbose),
        data=view.data(seen),
        status=seen.error.status if seen.error else 0,
        errors=errors,
    )


def _verify_guests(
    terminal: Terminal, spec: ClusterSpec, options: _VerifyOptions, only: Collection[str]
) -> Verification:
    from vsphere_ml.cli.views.progress.both_listeners import following_both
    from vsphere_ml.cli.wiring import guest_wiring, site_wiring
    from vsphere_ml.flows.guests.guests import GuestPhase, StepInputs
    from vsphere_ml.flows.guests.verify import verify as ask
    from vsphere_ml.flows.run_context import RunContext

    clock = site_wiring.SystemClock()
    playbooks = guest_wiring.read_playbooks(spec)
    guests = guest_wiring.guests(spec, clock, options.parallel)
    given = StepInputs(values=spec.guest.settings)
    with site_wiring.vcenter(spec.vcenter, terminal) as vcenter, following_both(terminal.err) as both:
        return ask(
            RunContext(spec, vcenter, both.site, clock),
            GuestPhase(guests=guests, playbooks=playbooks, given=given, notify=both.guests, wait_s=options.wait),
            only=only,
            strict=options.strict,
        )


def _verify_pods(terminal: Terminal, spec: ClusterSpec, options: _VerifyOptions, only: Collection[str]) -> Verification:
    from vsphere_ml.cli.bench.run_options import site_values
    from vsphere_ml.cli.views.progress.both_listeners import following_both
    from vsphere_ml.cli.wiring import site_wiring
    from vsphere_ml.flows.kubernetes.verify import PodVerification, verify_in_pods
    from vsphere_ml.flows.run_context import RunContext
    from vsphere_ml.kubernetes.api.kubeconfig import connect

    values, api = site_values(options.pods, spec), connect(options.pods.context or "")
    with site_wiring.vcenter(spec.vcenter, terminal) as vcenter, following_both(terminal.err) as both:
        run = RunContext(spec, vcenter, both.site, site_wiring.SystemClock())
        return verify_in_pods(
            PodVerification(
                run=run,
                api=api,
                values=values,
                notify=both.guests,
                only=only,
                wait_s=options.wait,
                strict=options.strict,
            )
        )
