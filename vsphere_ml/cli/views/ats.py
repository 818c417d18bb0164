"""What enable-ats sees, plans and leaves behind: as text, and as data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Group

from vsphere_ml.cli import exits
from vsphere_ml.cli.terminal import Answer
from vsphere_ml.cli.views.envelope import as_data, plain
from vsphere_ml.cli.views.text import count, line, table
from vsphere_ml.core.ats import Door, State
from vsphere_ml.core.host_changes import described

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rich.console import RenderableType
    from rich.text import Text

    from vsphere_ml.core.ats import Fact, HostFacts
    from vsphere_ml.core.ats_plan import HostPlan
    from vsphere_ml.flows.enable_ats import AtsPlan, AtsReport
    from vsphere_ml.flows.host_walk import HostOutcome

TITLES = ("HOST", "SETTING", "CONFIGURED", "PENDING REBOOT", "EFFECTIVE", "THROUGH")
STYLES = {
    State.EFFECTIVE: "green",
    State.PENDING: "yellow",
    State.LACKING: "red",
    State.UNPROVEN: "yellow",
    State.UNKNOWN: "red",
}


def answer(report: AtsReport, *, looking: bool, check: bool, lab: bool) -> Answer:
    """Return a run's answer; `check` makes a host that is not enabled an exit status of its own."""
    differs = bool(report.plan) if report.plan.revert else not report.plan.enabled
    text = Group(*_parts(report, looking=looking, lab=lab))
    shown = data(report, lab=lab)
    if looking:
        return Answer(text=text, data=shown, status=exits.DIFFERENCES if check and differs else 0)
    error = report.error
    return Answer(text=text, data=shown, status=error.status if error else 0, errors=(error,) if error else ())


def plan(todo: AtsPlan) -> Group:
    """Return what is to be done, host by host, as it is agreed to."""
    return Group(*_plan(todo))


def data(report: AtsReport, *, lab: bool) -> dict[str, Any]:
    """Return the report's fields."""
    outcomes = {each.plan.name: each for each in report.outcomes}
    return {
        "cluster": report.plan.cluster,
        "lab": lab,
        "acted": report.acted,
        "revert": report.plan.revert,
        "enabled": all(each.enabled for each in report.facts),
        "hosts": [_host(each, outcomes.get(each.name), report) for each in report.plan.hosts],
    }


def _host(each: HostPlan, outcome: HostOutcome | None, report: AtsReport) -> dict[str, Any]:
    last = next((found for found in report.hosts if found.facts.host == each.facts.host), each)
    facts = last.facts
    return {
        "host": each.name,
        "enabled": facts.enabled,
        "settings": [_fact(fact) for fact in facts.facts],
        "vms": [{**plain(vm), "ok": vm.ok} for vm in facts.vms],
        "steps": [described(step) for step in each.steps],
        "reboots": each.reboots,
        "stopped": list(each.stopped),
        "foreign": list(each.foreign),
        "cautions": list(each.cautions),
        "refusals": plain(each.refusals),
        "former": plain(last.record.former) if last.record else {},
        "outcome": None if outcome is None else _outcome(outcome),
    }


def _fact(fact: Fact) -> dict[str, Any]:
    return {
        **plain(fact),
        "state": fact.state.value,
        "is_configured": fact.is_configured,
        "is_pending_reboot": fact.is_pending,
        "is_effective": fact.is_effective,
    }


def _outcome(outcome: HostOutcome) -> dict[str, Any]:
    reboot = outcome.rebooted_s
    return {
        "begun": outcome.begun,
        "steps": [{"step": described(each.change), "seconds": round(each.seconds, 3)} for each in outcome.done],
        "reboot_seconds": None if reboot is None else round(reboot, 3),
        "errors": [as_data(error) for error in outcome.errors],
        "left": list(outcome.left),
    }


def _parts(report: AtsReport, *, looking: bool, lab: bool) -> Iterator[RenderableType]:
    if lab:
        yield line(("lab: ", "bold"), "hosts, kernels and firmware are simulated; this proves nothing about hardware")
    if looking:
        yield from _plan(report.plan)
    elif any(each.facts for each in report.facts):
        yield facts(report.facts)
    if not looking:
        yield from _by_hand(report.facts)
        yield from (_rebooted(each) for each in report.outcomes if each.rebooted_s is not None)
    yield _end(report, looking=looking)


def _plan(todo: AtsPlan) -> Iterator[RenderableType]:
    if any(each.facts.facts for each in todo.hosts):
        yield facts([each.facts for each in todo.hosts])
    yield from _by_hand([each.facts for each in todo.hosts])
    for host in todo.hosts:
        yield from (line((f"{host.name}: ", "yellow"), caution) for caution in host.cautions)
        if host.steps:
            yield line((host.name, "bold"))
            yield from (line(f"  {number:2}  {described(step)}") for number, step in enumerate(host.steps, 1))
        if host.foreign:
            yield line(("  not this cluster's, and stopped too: ", "bold red"), ", ".join(host.foreign))
        for reason in host.refusals:
            yield line((f"{host.name}: refused: ", "bold red"), reason.message)
            yield line(("  hint: ", "dim"), reason.hint)


def facts(hosts: Sequence[HostFacts]) -> RenderableType:
    """Return each host's settings, the three facts of each kept apart."""
    rows = [row for host in hosts for row in _rows(host)]
    return table(TITLES, rows)


def _rows(host: HostFacts) -> Iterator[tuple[str | Text, ...]]:
    for fact in host.facts:
        name = f"{fact.name} {fact.on}".strip()
        style = STYLES[fact.state]
        yield (
            host.name,
            name,
            line((_yes(fact.is_configured, fact.configured), "" if fact.is_configured else style)),
            line((_pending(fact), style if fact.is_pending else "")),
            line((_yes(fact.is_effective, fact.effective), style)),
            "-" if fact.door is Door.NONE else fact.door.value,
        )
    if host.vms:
        lacking = sum(not vm.ok for vm in host.vms)
        told = line(("yes", "green")) if not lacking else line((f"no: {count(lacking, 'key')}", "red"))
        yield (host.name, "VMs' peer-to-peer and MMIO keys", told, "-", told, Door.API.value)


def _yes(so: bool, value: str | None) -> str:  # noqa: FBT001 - a word for it
    if value is None:
        return "no: not known"
    return f"{'yes' if so else 'no'}: {value}"


def _pending(fact: Fact) -> str:
    if not fact.is_configured or fact.effective is None:
        return "-" if not fact.is_configured else "not known"
    return "yes" if fact.is_pending else "no"


def _by_hand(hosts: Iterable[HostFacts]) -> Iterator[Text]:
    """Yield what only a person can do, with the commands to type."""
    for host in hosts:
        commands: dict[str, None] = {}  # each once, in order
        for fact in host.lacking:
            if fact.state in {State.UNKNOWN, State.UNPROVEN}:
                place = f" of {fact.on}" if fact.on else ""
                yield line((f"{host.name}: {fact.name}{place}: ", "yellow"), fact.why or fact.state.value)
                commands |= dict.fromkeys(f"{fact.guest or host.name}# {command}" for command in fact.by_hand)
        yield from (line(f"  {command}") for command in commands)


def _rebooted(outcome: HostOutcome) -> Text:
    return line(f"{outcome.plan.name} was back {outcome.rebooted_s or 0.0:.0f} s after it was told to reboot")


def _end(report: AtsReport, *, looking: bool) -> Text:
    hosts = count(len(report.facts), "host")
    cluster = report.plan.cluster
    if report.plan.revert:
        if not report.acted and report.plan:
            return line(("to do: ", "bold"), f"the former values come back on {hosts}")
        if report.outcomes and all(not each.errors and not each.left for each in report.outcomes):
            return line(
                ("done: ", "bold green"), f"the former values are back on {count(len(report.outcomes), 'host')}"
            )
        return (
            line(("nothing to do: ", "green"), "no host has a record of former values")
            if not report.acted
            else line(("not finished", "bold red"))
        )
    if all(each.enabled for each in report.facts):
        word = "done: " if report.acted else "nothing to do: "
        return line((word, "bold green"), f"ATS is in effect on {hosts} of {cluster}")
    enabled = sum(each.enabled for each in report.facts)
    todo = sum(bool(each) for each in report.plan.hosts)
    told = f"ATS is in effect on {enabled} of {hosts} of {cluster}"
    if looking or not report.acted:
        return line(("to do: " if todo else "not enabled: ", "bold"), f"{told}; {count(todo, 'host')} to be worked on")
    return line(("not finished: ", "bold red"), told)
