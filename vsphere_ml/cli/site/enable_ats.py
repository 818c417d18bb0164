"""`vsml enable-ats`: PCIe Address Translation Services on the cluster's hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from vsphere_ml.cli.options import DEFAULT_FILE, ClusterFile, DryRun, Yes, command, option_group
from vsphere_ml.cli.terminal import Answer, Terminal

if TYPE_CHECKING:
    from rich.console import RenderableType

    from vsphere_ml.cli.views.site.ats import AtsData
    from vsphere_ml.core.hosts.host_plan import DisruptionPolicy
    from vsphere_ml.flows.hosts.ats_hosts import Task
    from vsphere_ml.flows.hosts.enable_ats import AtsPlan
    from vsphere_ml.flows.hosts.host_apply import StepTimeouts
    from vsphere_ml.flows.hosts.host_session import HostSession


@option_group
class _AtsOptions:
    """The options of `vsml enable-ats`."""

    yes: Yes = False
    dry_run: DryRun = False
    check: Annotated[
        bool, typer.Option("--check", help="Change nothing, and exit with 7 when a host is not enabled.")
    ] = False
    host: Annotated[
        list[str] | None,
        typer.Option("--host", metavar="HOST", help="This host instead of the cluster's; a name or glob; repeatable."),
    ] = None
    revert: Annotated[
        bool, typer.Option("--revert", help="Put back the values that were there before vsml changed them.")
    ] = False
    parallel: Annotated[
        int,
        typer.Option(
            "--parallel",
            "--rolling",
            min=1,
            max=64,
            metavar="N",
            help="Work on so many hosts at once; the first that fails leaves the next ones as they are.",
        ),
    ] = 1
    allow_downtime: Annotated[
        bool, typer.Option("--allow-downtime", help="Allow to shut down the cluster's VMs that run there.")
    ] = False
    allow_foreign: Annotated[
        bool, typer.Option("--allow-foreign", help="Allow to shut down other VMs that run there, too.")
    ] = False
    allow_power_off: Annotated[
        bool, typer.Option("--allow-power-off", help="Power a VM off when its guest does not shut down in time.")
    ] = False
    shutdown_deadline: Annotated[
        float, typer.Option(min=1, metavar="SECONDS", help="How long a guest may take to shut down.")
    ] = 300.0
    reboot_deadline: Annotated[
        float, typer.Option(min=1, metavar="SECONDS", help="How long a host may take to come back.")
    ] = 1800.0

    def task(self, terminal: Terminal) -> Task:
        """Return what the run is asked for."""
        from vsphere_ml.cli import consent
        from vsphere_ml.flows.hosts.ats_hosts import Task

        return Task(
            named=tuple(self.host or ()),
            revert=self.revert,
            dry_run=self.dry_run or self.check,
            confirmed=consent.is_confirmed(terminal, yes=self.yes),
        )

    @property
    def leave(self) -> DisruptionPolicy:
        """What may be done to VMs."""
        from vsphere_ml.core.hosts.host_plan import DisruptionPolicy

        return DisruptionPolicy(
            downtime=self.allow_downtime, foreign=self.allow_foreign, power_off=self.allow_power_off
        )

    @property
    def timeouts(self) -> StepTimeouts:
        """How long steps may take."""
        from vsphere_ml.flows.hosts.host_apply import StepTimeouts

        return StepTimeouts(shutdown_s=self.shutdown_deadline, reboot_s=self.reboot_deadline)


@command
def enable_ats(terminal: Terminal, file: ClusterFile = DEFAULT_FILE, *, given: _AtsOptions) -> Answer["AtsData"]:
    """Enable PCIe Address Translation Services (not VMFS's atomic test-and-set) on the cluster's ESXi hosts.

    Shows for the kernel setting, the ConnectX firmware, graphics type and virtual functions what is configured, what
    waits for a reboot and what is in effect. Hosts are evacuated, changed, rebooted and checked one after the other; a
    host that needs no change is not rebooted. An interrupted run is resumed.

    Example: `vsml enable-ats cluster.toml --check`, then `vsml enable-ats cluster.toml --allow-downtime`
    """
    from vsphere_ml.cli import consent
    from vsphere_ml.cli.views.progress.apply_progress import ChangeLines
    from vsphere_ml.cli.views.progress.host_progress import show_host_progress as following_hosts
    from vsphere_ml.cli.views.site import ats as view
    from vsphere_ml.cli.wiring import guest_wiring, host_wiring, site_wiring
    from vsphere_ml.cli.wiring.cluster_file import load
    from vsphere_ml.cli.wiring.journal import journal_changes, journal_host_steps, open_journal
    from vsphere_ml.flows.hosts.ats_hosts import HostsReading
    from vsphere_ml.flows.hosts.enable_ats import enable_ats as enable
    from vsphere_ml.flows.hosts.host_session import HostSession
    from vsphere_ml.flows.run_context import RunContext

    spec = load(file)
    clock, journal = site_wiring.SystemClock(), open_journal(spec, "enable-ats")
    with (
        host_wiring.shells(spec) as shells,
        site_wiring.vcenter_and_hosts(spec.vcenter, terminal) as (vcenter, hosts, server),
        following_hosts(terminal.err) as notify_host,
    ):
        task = given.task(terminal)
        session = HostSession(
            hosts=hosts,
            notify=journal_host_steps(journal, notify_host),
            shells=shells,
            guests=guest_wiring.guests(spec, clock),
            leave=given.leave,
            timeouts=given.timeouts,
            parallel=given.parallel,
            vcenter=host_wiring.names_of(server),
        )
        report = enable(
            HostsReading(
                RunContext(spec, journal_changes(vcenter, journal), ChangeLines(terminal.err), clock), session, task
            ),
            approve=consent.approval(
                terminal,
                lambda plan: _plan_text(terminal, plan),
                yes=given.yes,
                impact=lambda plan: _impact(plan, session),
            ),
            show=lambda plan: consent.show(terminal, _plan_text(terminal, plan), _impact(plan, session)),
        )
    return view.answer(
        report,
        read_only=task.dry_run,
        check=given.check,
        lab=spec.vcenter.lab is not None,
        every_step=terminal.settings.verbose,
        timeouts=session.timeouts,
    )


def _plan_text(terminal: Terminal, plan: AtsPlan) -> RenderableType:
    from vsphere_ml.cli.views.site import ats_text

    return ats_text.plan(plan, every_step=terminal.settings.verbose)


def _impact(plan: AtsPlan, session: HostSession) -> str:
    from vsphere_ml.cli.views.cluster.impact import impact_on_hosts

    return impact_on_hosts(plan.hosts, session.parallel, session.timeouts)
