"""`vsml lab hosts` and `vsml lab host`: the lab's ESXi hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from vsphere_ml.cli.lab.lab import Name, app
from vsphere_ml.cli.options import command, option_group
from vsphere_ml.cli.terminal import Answer, Terminal

if TYPE_CHECKING:
    from vsphere_ml.cli.views.lab.lab_hosts import LabHostsData


@app.command()
@command
def hosts(
    _terminal: Terminal,
    name: Name = "default",
) -> Answer["LabHostsData"]:
    """List the lab's ESXi hosts: where their shells answer, whether SSH runs, and how they are to fail.

    Example: `vsml lab hosts`
    """
    from vsphere_ml.cli.views.lab import lab_hosts as view
    from vsphere_ml.lab import hosts as lab_hosts
    from vsphere_ml.lab import state

    lab = state.running_lab(name)
    listed = lab_hosts.hosts(lab)
    return Answer(text=view.text(listed), data=view.data(lab, listed))


@option_group
class _HostOptions:
    clear: Annotated[bool, typer.Option("--clear", help="End all its faults.")] = False
    reboot_seconds: Annotated[float | None, typer.Option(min=0, help="How long its reboots take.")] = None
    back: Annotated[bool, typer.Option("--back", help="Let a host come back that went away.")] = False


@app.command()
@command
def host(
    _terminal: Terminal,
    host: Annotated[str, typer.Argument(help="The host's name.")],
    faults: Annotated[
        list[str] | None,
        typer.Argument(metavar="FAULT", help="How it is to fail; docs/reference/lab-hosts.md lists the faults."),
    ] = None,
    name: Name = "default",
    *,
    given: _HostOptions,
) -> Answer["LabHostsData"]:
    """Let one of the lab's ESXi hosts fail, or reboot slowly, or come back; without options, show it.

    Example: `vsml lab host esx-02.lab.test no-return`, then `vsml lab host esx-02.lab.test --clear --back`
    """
    from vsphere_ml.cli.views.lab import lab_hosts as view
    from vsphere_ml.lab import hosts as lab_hosts
    from vsphere_ml.lab import state

    lab = state.running_lab(name)
    wanted = [] if given.clear else faults or None
    slow = None if given.reboot_seconds is None else round(given.reboot_seconds * 1000)
    changed = lab_hosts.change(lab, host, faults=wanted, reboot_ms=slow, back=given.back)
    return Answer(text=view.text((changed,)), data=view.data(lab, (changed,)))
