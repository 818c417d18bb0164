"""How hosts are made ready for nodes, as a plan shows it: what changes from what to what, how, and what it stops."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from vsphere_ml.cli.views.cluster.changes import list_names
from vsphere_ml.cli.views.layout.folded import fold_hosts
from vsphere_ml.cli.views.layout.hints import hint_line
from vsphere_ml.cli.views.layout.text import line
from vsphere_ml.core.order import fold_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rich.text import Text

    from vsphere_ml.core.diagnostics import Diagnostic, Refusal
    from vsphere_ml.core.hosts.host_changes import HostChange
    from vsphere_ml.core.hosts.host_plan import HostPlan
    from vsphere_ml.core.model.host_settings import AccessMethod, HostSetting, SettingKind
    from vsphere_ml.flows.hosts.host_apply import HostOutcome

TITLE = "hosts made ready"


class _SettingData(TypedDict):
    part: SettingKind
    name: str
    on: str
    configured: str | None
    effective: str | None
    wanted: str
    at_once: bool
    access: AccessMethod
    manual_steps: tuple[str, ...]


class ConfiguredHostData(TypedDict):
    """A host that is configured, and what that means for the VMs on it: stopped (`foreign`: of others), migrated."""

    host: str
    settings: list[_SettingData]
    reboots: bool
    stopped: tuple[str, ...]
    foreign: tuple[str, ...]
    migrated: tuple[str, ...]
    refusals: tuple[Refusal, ...]
    warnings: tuple[str, ...]
    diagnostics: tuple[Diagnostic, ...]


class HostOutcomeData(TypedDict):
    """What was set on a host, and how long its reboot took."""

    host: str
    settings: list[_SettingData]
    steps: list[str]
    reboot_seconds: float | None


def lines(hosts: Sequence[HostPlan]) -> Iterator[Text]:
    """Yield each host's settings, its steps, and what speaks against them."""
    if not hosts:
        return
    from vsphere_ml.cli.views.site.host_lines import describe_steps, merge_refusals

    yield line((TITLE, "bold"))
    for names, setting in fold_hosts((host.name, _setting(fact)) for host in hosts for fact in host.facts.unmet):
        yield line(("   ~ ", "yellow"), f"{names}: {setting}")
    yield from (line("     ", f"{names}: {steps}") for names, steps in describe_steps(hosts))
    if idle := [host.name for host in hosts if not host.steps]:
        yield line("     ", f"{', '.join(fold_names(idle))}: nothing is done")
    yield from _list_others(hosts)
    for names, warning in fold_hosts((host.name, each) for host in hosts for each in host.warnings):
        yield line(("   ? ", "magenta"), f"{names}: {warning}")
    for names, (message, hint) in fold_hosts(
        (host.name, (each.message, each.hint)) for host in hosts for each in host.diagnostics
    ):
        yield line(("   ? ", "magenta"), f"{names}: {message}")
        yield hint_line(hint, "     ")
    for names, message, hint in merge_refusals(hosts):
        yield line(("   ! ", "bold red"), f"{names}: refused: {message}")
        yield hint_line(hint, "     ")


def _list_others(hosts: Sequence[HostPlan]) -> Iterator[Text]:
    """Yield which VMs are stopped meanwhile, and which go elsewhere."""
    for host in hosts:
        if host.stopped or host.foreign:
            yield line(
                ("   ! ", "bold red"), f"{host.name}: stopped meanwhile: {list_names((*host.stopped, *host.foreign))}"
            )
        if host.migrated:
            yield line(("   ~ ", "yellow"), f"{host.name}: DRS migrates to other hosts: {list_names(host.migrated)}")


def outcome_lines(outcomes: Iterable[HostOutcome]) -> Iterator[Text]:
    """Yield what was set on each host, and how long it was away."""
    for each in outcomes:
        text = ", ".join(f"{_name(fact)} {fact.wanted}" for fact in each.plan.facts.unmet)
        back = "" if each.rebooted_s is None else f"; back {each.rebooted_s:.0f} s after the reboot was requested"
        yield line((f"{each.plan.name}: ", "bold"), f"configured: {text}{back}")


def outcomes(hosts: Iterable[HostOutcome]) -> list[HostOutcomeData]:
    return [
        {
            "host": each.plan.name,
            "settings": [_fields(fact) for fact in each.plan.facts.unmet],
            "steps": [_describe(step.change) for step in each.done],
            "reboot_seconds": None if each.rebooted_s is None else round(each.rebooted_s, 3),
        }
        for each in hosts
    ]


def data(hosts: Sequence[HostPlan]) -> list[ConfiguredHostData]:
    """Return each host's settings and what they mean for who works there; the steps are the plan's first stage."""
    return [
        {
            "host": host.name,
            "settings": [_fields(fact) for fact in host.facts.unmet],
            "reboots": host.reboots,
            "stopped": host.stopped,
            "foreign": host.foreign,
            "migrated": host.migrated,
            "refusals": host.refusals,
            "warnings": host.warnings,
            "diagnostics": host.diagnostics,
        }
        for host in hosts
    ]


def _setting(fact: HostSetting) -> str:
    if fact.is_pending:
        return f"{_name(fact)}: {fact.effective} → {fact.wanted}, configured and waiting for a reboot"
    when = "at once" if fact.at_once else "after a reboot"
    return f"{_name(fact)}: {_observed_value(fact)} → {fact.wanted}, {when}, by {fact.access}"


def _observed_value(fact: HostSetting) -> str:
    return "not known" if fact.configured is None else fact.configured or "nothing set"


def _name(fact: HostSetting) -> str:
    return f"{fact.name} of {fact.on}" if fact.on else fact.name


def _describe(step: HostChange) -> str:
    from vsphere_ml.core.hosts.host_changes import describe_host_change

    return describe_host_change(step)


def _fields(fact: HostSetting) -> _SettingData:
    return {
        "part": fact.part,
        "name": fact.name,
        "on": fact.on,
        "configured": fact.configured,
        "effective": fact.effective,
        "wanted": fact.wanted,
        "at_once": fact.at_once,
        "access": fact.access,
        "manual_steps": fact.manual_steps,
    }
