"""One way from hosts as they are to hosts as they are wanted, for `enable-ats` and for `[host_config]`.

The two differ in which settings are wanted and in how these are read; what a host's plan is made from, how its shell
is asked and how plans are carried out is the same.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, TypeVar

from vsphere_ml.core.errors import VsmlError
from vsphere_ml.core.hosts import saved_state
from vsphere_ml.core.hosts.host_plan import DisruptionPolicy, HostPlanInput
from vsphere_ml.flows.hosts.host_apply import HostExecutor, StepTimeouts
from vsphere_ml.flows.hosts.host_shell import HostShell, shut
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

    from vsphere_ml.core.model.esxi_state import EsxiHostState
    from vsphere_ml.core.model.host_settings import HostFacts
    from vsphere_ml.core.model.spec import ClusterSpec
    from vsphere_ml.core.ports.esxi import Hosts, HostShells
    from vsphere_ml.core.ports.host_events import HostListener
    from vsphere_ml.core.ports.vcenter import Clock, Guests
    from vsphere_ml.flows.hosts.host_apply import Check, Shell
    from vsphere_ml.flows.hosts.host_shell import Run

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSession:
    """Access to ESXi hosts and their NICs' firmware, and what may be done to the VMs that run there."""

    hosts: Hosts
    notify: HostListener
    shells: HostShells | None = None
    guests: Guests | None = None  # by which the firmware of a whole function is reached
    leave: DisruptionPolicy = field(default_factory=DisruptionPolicy)
    timeouts: StepTimeouts = field(default_factory=StepTimeouts)
    parallel: int = 1  # hosts at once
    vcenter: frozenset[str] = frozenset()  # its own names and addresses

    def plan_input(self, spec: ClusterSpec, state: EsxiHostState, facts: HostFacts) -> HostPlanInput:
        """Return what a host's plan is made from, whatever is wanted of the host."""
        return HostPlanInput(
            cluster=spec.name,
            nodes=[node.name for node in spec.nodes],
            facts=facts,
            state=state,
            record=saved_state.parse(state.record),
            leave=self.leave,
            evacuate=spec.host_config.evacuate,
            user=self.shells.user if self.shells else "",
            vcenter=self.vcenter,
        )

    def executor(self, by_shell: Shell, check: Check, clock: Clock) -> HostExecutor:
        """Return what carries plans of these hosts out; `check` reads a host's settings again."""
        return HostExecutor(
            hosts=self.hosts,
            by_shell=by_shell,
            check=check,
            notify=self.notify,
            clock=clock,
            timeouts=self.timeouts,
            parallel=self.parallel,
        )

    def open_shell(self, state: EsxiHostState) -> HostShell:
        """Return a host's shell, of which something was read before."""
        if self.shells is None:
            raise AssertionError("a setting without access was not read either")
        return HostShell(self.hosts, self.shells, state)

    def ask_shell(self, state: EsxiHostState, ask: Callable[[Run], T]) -> T | str:
        """Return what is asked of a host's shell, or why it could not be asked. Raises no error of the access."""
        if why := shut(self.shells, state):
            return why
        try:
            with self.open_shell(state) as run:
                return ask(run)
        except VsmlError as error:
            return error.message
