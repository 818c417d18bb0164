"""What enable-ats sees, plans and leaves behind, as a person reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group

from vsphere_ml.cli.views.cluster.changes import list_names
from vsphere_ml.cli.views.layout.folded import fold_hosts
from vsphere_ml.cli.views.layout.hints import hint_line
from vsphere_ml.cli.views.layout.text import line, table
from vsphere_ml.cli.views.site.host_lines import describe_steps, merge_refusals
from vsphere_ml.core.hosts.host_changes import describe_host_change
from vsphere_ml.core.model.host_settings import AccessMethod, SettingState
from vsphere_ml.core.order import count, fold_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rich.console import RenderableType
    from rich.text import Text

    from vsphere_ml.core.hosts.host_plan import HostPlan
    from vsphere_ml.core.model.host_settings import HostFacts, HostSetting
    from vsphere_ml.flows.hosts.enable_ats import AtsPlan, AtsReport
    from vsphere_ml.flows.hosts.host_apply import HostOutcome

TITLES = ("SETTING", "CONFIGURED", "PENDING REBOOT", "EFFECTIVE", "THROUGH", "HOSTS")
OPTIONAL = ("THROUGH", "PENDING REBOOT")
STYLES = {
    SettingState.EFFECTIVE: "green",
    SettingState.PENDING: "yellow",
    SettingState.NOT_CONFIGURED: "red",
    SettingState.UNPROVEN: "yellow",
    SettingState.UNKNOWN: "red",
}
_Cells = tuple[str, str, str, str, str, SettingState]  # of a row, and the state that colours it


def report(done: AtsReport, *, read_only: bool, lab: bool, every_step: bool = False) -> Group:
    """Return the end of a run: the facts of all hosts, what only a person can do, how long reboots took."""
    return Group(*_report(done, read_only=read_only, lab=lab, every_step=every_step))


def plan(todo: AtsPlan, *, every_step: bool = False) -> Group:
    """Return what is to be done, host by host, as it is agreed to; with `every_step` what is noted on the way, too."""
    return Group(*_plan(todo, every_step=every_step))


def _report(done: AtsReport, *, read_only: bool, lab: bool, every_step: bool) -> Iterator[RenderableType]:
    if lab:
        yield line(("lab: ", "bold"), "hosts, kernels and firmware are simulated; this proves nothing about hardware")
    if read_only:
        yield from _plan(done.plan, every_step=every_step)
    else:
        yield from _facts(done.facts)
        yield from (_reboot_line(each) for each in done.outcomes if each.rebooted_s is not None)
    yield _end_of_revert(done) if done.plan.revert else _end(done, read_only=read_only)


def _plan(todo: AtsPlan, *, every_step: bool) -> Iterator[RenderableType]:
    yield from _facts([each.facts for each in todo.hosts])
    for names, warning in fold_hosts((host.name, each) for host in todo.hosts for each in host.warnings):
        yield line((f"{names}: ", "yellow"), warning)
    if every_step:
        yield from (each for host in todo.hosts for each in _every_step(host))
    else:
        yield from (line((f"{names}: ", "bold"), steps) for names, steps in describe_steps(todo.hosts))
    yield from _list_others(todo.hosts)
    for names, (message, hint) in fold_hosts(
        (host.name, (each.message, each.hint)) for host in todo.hosts for each in host.diagnostics
    ):
        yield line((f"{names}: ", "yellow"), message)
        yield hint_line(hint, label="  hint: ", style="dim")
    for names, message, hint in merge_refusals(todo.hosts):
        yield line((f"{names}: refused: ", "bold red"), message)
        yield hint_line(hint, label="  hint: ", style="dim")


def _every_step(host: HostPlan) -> Iterator[Text]:
    if host.steps:
        yield line((host.name, "bold"))
        yield from (line(f"  {number:2}  {describe_host_change(step)}") for number, step in enumerate(host.steps, 1))


def _list_others(hosts: Iterable[HostPlan]) -> Iterator[Text]:
    """Yield which VMs go elsewhere, and which of others are stopped."""
    for host in hosts:
        if host.migrated:
            yield line((f"{host.name}: DRS migrates to other hosts: ", "yellow"), ", ".join(host.migrated))
        if host.foreign:
            yield line((f"{host.name}: not this cluster's, and stopped too: ", "bold red"), ", ".join(host.foreign))


def _facts(hosts: Sequence[HostFacts]) -> Iterator[RenderableType]:
    """Yield each setting once for all hosts where it is the same, its three facts apart; then what to type."""
    alike = fold_rows((host.name, cells) for host in hosts for cells in _rows(host))
    if ordered := sorted(alike, key=lambda item: item[1][0] != "atsSupport"):
        yield table(TITLES, (_color_cells(cells, _hosts(names, hosts)) for names, cells in ordered), OPTIONAL)
    yield from _by_hand(hosts)


def _hosts(names: Sequence[str], hosts: Sequence[HostFacts]) -> str:
    return f"all {len(hosts)}" if len(names) == len(hosts) > 1 else list_names(names)


def _color_cells(cells: _Cells, hosts: str) -> tuple[str | Text, ...]:
    name, configured, pending, effective, access, state = cells
    style = STYLES[state]
    missing = style if state in {SettingState.NOT_CONFIGURED, SettingState.UNKNOWN} else ""
    waits = style if state is SettingState.PENDING else ""
    return (name, line((configured, missing)), line((pending, waits)), line((effective, style)), access, hosts)


def _rows(host: HostFacts) -> Iterator[_Cells]:
    for fact in host.facts:
        access = "-" if fact.access is AccessMethod.NONE else fact.access.value
        configured = _yes(so=fact.is_configured, value=fact.configured)
        effective = _yes(so=fact.is_effective, value=fact.effective)
        back = f" back to {fact.wanted}" if fact.exact else ""
        yield (f"{fact.name} {fact.on}".strip() + back, configured, _pending_cell(fact), effective, access, fact.state)
    if host.vms:
        missing = sum(not vm.ok for vm in host.vms)
        text, state = (
            (f"no: {count(missing, 'key')}", SettingState.NOT_CONFIGURED)
            if missing
            else ("yes", SettingState.EFFECTIVE)
        )
        yield ("VMs' peer-to-peer and MMIO keys", text, "-", text, AccessMethod.API.value, state)


def _yes(*, so: bool, value: str | None) -> str:
    if value is None:
        return "no: not known"
    return f"{'yes' if so else 'no'}: {value}"


def _pending_cell(fact: HostSetting) -> str:
    if not fact.is_configured:
        return "-"
    if fact.effective is None:
        return "not known"
    return "yes" if fact.is_pending else "no"


def _by_hand(hosts: Sequence[HostFacts]) -> Iterator[Text]:
    """Yield what only a person can do, with the commands to type."""
    for names, facts in fold_hosts((host.name, tuple(_left_to_people(host))) for host in hosts):
        commands: dict[str, None] = {}  # each once, in order
        for name, why, guest, steps in facts:
            yield line((f"{names}: {name}: ", "yellow"), why)
            commands |= dict.fromkeys(f"{guest or names}# {command}" for command in steps)
        yield from (line(f"  {command}") for command in commands)
    yield from (line((f"{vm.vm}: ", "yellow"), vm.words) for host in hosts for vm in host.vms if not vm.ok)


def _left_to_people(host: HostFacts) -> Iterator[tuple[str, str, str, tuple[str, ...]]]:
    """Yield what vsml cannot set: its name, why, the guest through which it can be set, and what to type."""
    for fact in host.unmet:
        if fact.state in {SettingState.UNKNOWN, SettingState.UNPROVEN} or (
            fact.read_only and fact.state is SettingState.NOT_CONFIGURED
        ):
            place = f" of {fact.on}" if fact.on else ""
            yield f"{fact.name}{place}", fact.why or fact.state.value, fact.guest, tuple(fact.manual_steps)


def _reboot_line(outcome: HostOutcome) -> Text:
    return line(f"{outcome.plan.name} was back {outcome.rebooted_s or 0.0:.0f} s after the reboot was requested")


def _end(done: AtsReport, *, read_only: bool) -> Text:
    enabled = sum(each.enabled for each in done.facts)
    hosts = f"{count(len(done.facts), 'host')} of {done.plan.cluster}"
    if enabled == len(done.facts):
        return line(("done: " if done.applied else "nothing to do: ", "bold green"), f"ATS is in effect on {hosts}")
    todo = sum(bool(each) for each in done.plan.hosts)
    text = f"ATS is in effect on {enabled} of {hosts}"
    if read_only or not done.applied:
        word = "to do: " if todo else "not enabled: "
        return line((word, "bold"), f"{text}; {count(todo, 'host')} to be worked on")
    return line(("not finished: ", "bold red"), text)


def _end_of_revert(done: AtsReport) -> Text:
    hosts = count(len(done.plan.hosts), "host")
    if not done.plan.hosts:
        return line(("nothing to do: ", "green"), "no host has a record of former values")
    if done.plan and not done.applied:
        return line(("to do: ", "bold"), f"the former values come back on {hosts}")
    if done.error is None:
        return line(("done: ", "bold green"), f"the former values are back on {hosts}")
    return line(("not finished: ", "bold red"), "not every host has its former values back")
