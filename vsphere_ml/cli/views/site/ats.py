"""The answer of enable-ats, and what it sees, plans and leaves behind as data."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from vsphere_ml.cli import exits
from vsphere_ml.cli.terminal import Answer
from vsphere_ml.cli.views.cluster.impact import TIMEOUTS
from vsphere_ml.cli.views.layout.envelope import as_data
from vsphere_ml.cli.views.site import ats_text
from vsphere_ml.core.codec import Extended
from vsphere_ml.core.hosts.host_changes import describe_host_change

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vsphere_ml.cli.views.layout.envelope import ErrorFields
    from vsphere_ml.core.diagnostics import Diagnostic, Refusal
    from vsphere_ml.core.hosts.host_plan import HostPlan
    from vsphere_ml.core.model.host_settings import HostSetting, SettingState, VmFact
    from vsphere_ml.flows.hosts.enable_ats import AtsReport
    from vsphere_ml.flows.hosts.host_apply import HostOutcome, StepTimeouts


class _JudgedSetting(TypedDict):
    state: SettingState
    is_configured: bool
    is_pending_reboot: bool
    is_effective: bool


class _JudgedVm(TypedDict):
    ok: bool


class _StepTaken(TypedDict):
    step: str
    seconds: float


class _HostEnd(TypedDict):
    """What became of a host: `begun` with its first change, the steps that were taken, and what was left as it is."""

    begun: bool
    steps: list[_StepTaken]
    reboot_seconds: float | None
    errors: list[ErrorFields]
    left: tuple[str, ...]


class _HostData(TypedDict):
    """A host's settings and VMs as they were seen, and what is done about them; `former` are the recorded values.

    Stopped VMs, `foreign` ones of others, are off for at most `off_seconds`.
    """

    host: str
    enabled: bool
    settings: list[Extended[HostSetting, _JudgedSetting]]
    vms: list[Extended[VmFact, _JudgedVm]]
    steps: list[str]
    reboots: bool
    stopped: tuple[str, ...]
    foreign: tuple[str, ...]
    off_seconds: float
    migrated: tuple[str, ...]
    warnings: tuple[str, ...]
    diagnostics: tuple[Diagnostic, ...]
    refusals: tuple[Refusal, ...]
    former: Mapping[str, str]
    outcome: _HostEnd | None


class AtsData(TypedDict):
    """The hosts of a cluster, whether ATS is enabled on all of them, and what was done."""

    cluster: str
    lab: bool
    applied: bool
    revert: bool
    enabled: bool
    hosts: list[_HostData]


def answer(
    report: AtsReport,
    *,
    read_only: bool,
    check: bool,
    lab: bool,
    every_step: bool = False,
    timeouts: StepTimeouts = TIMEOUTS,
) -> Answer[AtsData]:
    """Return a run's answer; `check` makes a host that is not enabled an exit status of its own."""
    differs = bool(report.plan.hosts) if report.plan.revert else not report.plan.enabled
    text = ats_text.report(report, read_only=read_only, lab=lab, every_step=every_step)
    shown = data(report, lab=lab, timeouts=timeouts)
    if read_only:
        return Answer(text=text, data=shown, status=exits.DIFFERENCES if check and differs else 0)
    error = report.error
    return Answer(text=text, data=shown, status=error.status if error else 0, errors=(error,) if error else ())


def data(report: AtsReport, *, lab: bool, timeouts: StepTimeouts = TIMEOUTS) -> AtsData:
    """Return the report's fields."""
    outcomes = {each.plan.name: each for each in report.outcomes}
    return {
        "cluster": report.plan.cluster,
        "lab": lab,
        "applied": report.applied,
        "revert": report.plan.revert,
        "enabled": all(each.enabled for each in report.facts),
        "hosts": [_host(each, outcomes.get(each.name), report, timeouts) for each in report.plan.hosts],
    }


def _host(each: HostPlan, outcome: HostOutcome | None, report: AtsReport, timeouts: StepTimeouts) -> _HostData:
    last = next((found for found in report.hosts if found.facts.host == each.facts.host), each)
    facts = last.facts
    return {
        "host": each.name,
        "enabled": facts.enabled,
        "settings": [_fact(fact) for fact in facts.facts],
        "vms": [Extended(vm, {"ok": vm.ok}) for vm in facts.vms],
        "steps": [describe_host_change(step) for step in each.steps],
        "reboots": each.reboots,
        "stopped": each.stopped,
        "foreign": each.foreign,
        "off_seconds": timeouts.seconds_off(each),
        "migrated": each.migrated,
        "warnings": each.warnings,
        "diagnostics": each.diagnostics,
        "refusals": each.refusals,
        "former": last.record.former if last.record else {},
        "outcome": None if outcome is None else _outcome(outcome),
    }


def _fact(fact: HostSetting) -> Extended[HostSetting, _JudgedSetting]:
    return Extended(
        fact,
        {
            "state": fact.state,
            "is_configured": fact.is_configured,
            "is_pending_reboot": fact.is_pending,
            "is_effective": fact.is_effective,
        },
    )


def _outcome(outcome: HostOutcome) -> _HostEnd:
    reboot = outcome.rebooted_s
    return {
        "begun": outcome.begun,
        "steps": [
            {"step": describe_host_change(each.change), "seconds": round(each.seconds, 3)} for each in outcome.done
        ],
        "reboot_seconds": None if reboot is None else round(reboot, 3),
        "errors": [as_data(error) for error in outcome.errors],
        "left": outcome.left,
    }
