"""What a cluster's template is missing: as far as vCenter knows it, and by one boot of a clone, deleted again."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from vsphere_ml.core.errors import NotPossible, VsmlError
from vsphere_ml.core.placement.resolve import find_source
from vsphere_ml.core.rules.template_boot import PROBES, booted_facts, silent_facts
from vsphere_ml.core.rules.template_facts import template_facts
from vsphere_ml.flows.cluster.destroy import destroy
from vsphere_ml.flows.cluster.provision import provision
from vsphere_ml.flows.guests import boot
from vsphere_ml.flows.guests.visit import run_with_retry
from vsphere_ml.flows.site.read_site import read_site

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from vsphere_ml.core.diagnostics import Diagnostic
    from vsphere_ml.core.model.guest import CommandAnswer, Shell
    from vsphere_ml.core.model.spec import ClusterSpec
    from vsphere_ml.flows.cluster.proposal import GuestConfig, Proposal
    from vsphere_ml.flows.guests.guests import GuestPhase
    from vsphere_ml.flows.run_context import RunContext


def check_template(run: RunContext) -> tuple[Diagnostic, ...]:
    """Return what is known of the template. Raises NotPossible `site.not-found` where there is none of that name."""
    inventory = read_site(run, why="first", devices=False, source=True)
    return template_facts(find_source(run.spec, inventory), run.spec)


def trial_spec(spec: ClusterSpec) -> ClusterSpec:
    """Return a cluster of one node, like the first one, for one boot of the template."""
    first = spec.nodes[0]
    node = replace(first, name=f"{first.name}-template", roce_address=None, more_roce_addresses=())
    return replace(spec, name=f"{spec.name}-template", nodes=(node,))


def boot_template(
    run: RunContext, phase: GuestPhase, *, first: str, approve: Callable[[Proposal], bool], given: GuestConfig
) -> tuple[Diagnostic, ...]:
    """Return what one boot of a clone shows; the clone is deleted again, whatever became of it.

    `first` is the node whose place and address the clone takes. NotPossible `source.node-exists` when its VM is there
    already, and what a provision raises.
    """
    inventory = read_site(run, why="first", devices=False)
    if run.spec.nodes[0].address is not None and any(vm.name == first for vm in inventory.vms):
        raise NotPossible(
            f"{first} is there already, and a clone for a boot would have its address",
            code="source.node-exists",
            target=first,
            hint="leave out --boot, or give the first node an address by DHCP",
        )
    try:
        report = provision(run, approve=approve, given=given)
        if report.error is not None:
            return silent_facts(report.error)
        return _ask(run, phase)
    finally:
        destroy(run, approve=lambda _: True)


def _ask(run: RunContext, phase: GuestPhase) -> tuple[Diagnostic, ...]:
    def ask(shell: Shell) -> Mapping[str, CommandAnswer]:
        return shell.ask(PROBES)

    (node,) = run.spec.nodes
    deadline = boot.start_deadline(phase.wait_s, run.clock)
    found = boot.wait_ready(run, boot.read_running_site(run), phase.guests, deadline, notify=phase.notify)
    outcomes = run_with_retry(phase.guests, found.places, ask, deadline.left_s, notify=phase.notify)
    outcome = outcomes.get(node.name) or found.errors[node.name]
    return silent_facts(outcome) if isinstance(outcome, VsmlError) else booted_facts(outcome, node.name, run.spec)
