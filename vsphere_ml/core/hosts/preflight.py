"""What speaks against working on a host, and what a person should know before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.core.diagnostics import Diagnostic, Refusal, Severity
from vsphere_ml.core.hosts import evacuation
from vsphere_ml.core.model.esxi_state import LockdownMode
from vsphere_ml.core.model.host_settings import SettingKind, SettingState
from vsphere_ml.core.model.spec import Evacuation
from vsphere_ml.core.order import list_first

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vsphere_ml.core.hosts.host_plan import HostPlanInput
    from vsphere_ml.core.model.esxi_state import VmOnHost
    from vsphere_ml.core.model.host_settings import HostSetting

_FOREIGN_HINT = "move them away, or add --allow-foreign to have them shut down and started again"


def to_migrate(case: HostPlanInput) -> tuple[VmOnHost, ...]:
    """Return the VMs that DRS takes away; none of the cluster's, whose places are planned."""
    if case.evacuate is not Evacuation.DRS:
        return ()
    others = (vm for vm in case.state.vms if vm.on and not vm.agent and vm.cluster_mark != case.cluster)
    return evacuation.moved_by_drs(case.state.drs, others)


def to_stop(case: HostPlanInput) -> tuple[VmOnHost, ...]:
    """Return the VMs to stop: the cluster's in the file's order, then others. vCenter sees to its agents itself."""
    place = {node: number for number, node in enumerate(case.nodes)}
    migrated = to_migrate(case)
    running = (vm for vm in case.state.vms if vm.on and not vm.agent and vm not in migrated)
    return tuple(
        sorted(running, key=lambda vm: (vm.cluster_mark != case.cluster, place.get(vm.name, len(place)), vm.name))
    )


def name_with_owner(vm: VmOnHost) -> str:
    """Return a VM's name, and whose it is when it is another cluster's."""
    return f"{vm.name} (of cluster {vm.cluster_mark})" if vm.cluster_mark else vm.name


def refusals(case: HostPlanInput, running: tuple[VmOnHost, ...]) -> Iterator[Refusal]:
    """Yield why a host must not be begun, with what can be done about each; `running` are the VMs it would stop."""
    state = case.state
    if case.unsupported and not case.revert:
        yield Refusal(
            code="ats.unsupported",
            target=state.name,
            message=f"{case.unsupported} (rule ats-needs-esxi)",
            hint="upgrade it, or name the other hosts with `--host`",
        )
        return
    if not state.connected and not (case.record and case.record.maintenance):
        yield Refusal(
            code="ats.host-down",
            target=state.name,
            message=f"vCenter sees it as {state.connection}",
            hint="reconnect it in vCenter",
        )
        return
    if here := [vm.name for vm in running if vm.addresses & case.vcenter]:
        yield Refusal(
            code="ats.vcenter-here",
            target=state.name,
            message=f"the vCenter itself runs there, as {here[0]}",
            hint="move that VM to another host",
        )
    if (lockdown := _lockdown_finding(case)) is not None:
        yield lockdown
    if case.ready:
        yield from _find_unread_settings(case)
    if running and case.evacuate is Evacuation.REFUSE:
        yield Refusal(
            code="host.not-empty",
            target=state.name,
            message="VMs run there, and the file has such hosts left alone",
            details=tuple(vm.name for vm in running),
            hint="migrate them or shut them down, or set `evacuate` in [host_config]",
        )
        return
    foreign = [vm for vm in running if vm.cluster_mark != case.cluster]
    if foreign and not case.leave.foreign:
        yield _foreign_finding(case, foreign, running)
    if running and not case.leave.downtime:
        yield Refusal(
            code="plan.interrupts",
            target=state.name,
            message="VMs that run would be stopped",
            details=tuple(vm.name for vm in running),
            hint="add --allow-downtime when that is wanted",
            flags=("--allow-downtime", *_hard_stop(case, running)),
        )


_BY_SHELL = frozenset({SettingKind.FIRMWARE, SettingKind.MIG})


def _lockdown_finding(case: HostPlanInput) -> Refusal | None:
    """Return that lockdown mode keeps vsml from settings that take the host's shell; None where it does not."""
    lockdown = case.state.lockdown
    unread = [fact for fact in case.facts.facts if _takes_shell(fact) and fact.state is SettingState.UNKNOWN]
    if not (case.user and unread and lockdown.refuses(case.user)):
        return None
    users = ", ".join(f"'{user}'" for user in (*(lockdown.exceptions or ()), case.user))
    return Refusal(
        code="host.lockdown",
        target=case.state.name,
        message=f"it is in {lockdown.words}, which refuses SSH to {case.user}; {unread[0].name} takes the host's shell",
        hint=f"make {case.user} an exception user of the host (Configure > Security Profile > Lockdown Mode), by "
        f"PowerCLI: (Get-View (Get-VMHost {case.state.name}).ExtensionData.ConfigManager.HostAccessManager)"
        f".UpdateLockdownExceptions(@({users}))",
    )


def _takes_shell(fact: HostSetting) -> bool:
    return fact.part in _BY_SHELL and not fact.guest


def _foreign_finding(case: HostPlanInput, foreign: list[VmOnHost], running: tuple[VmOnHost, ...]) -> Refusal:
    """Return that others' VMs would be stopped; where DRS was to migrate them, why it does not."""
    flags = () if case.ready else ("--allow-foreign", *_hard_stop(case, running))
    if case.evacuate is Evacuation.DRS:
        return Refusal(
            code="host.not-evacuated",
            target=case.state.name,
            message="VMs run there that DRS does not migrate",
            details=tuple(f"{name_with_owner(vm)} ({evacuation.why_not_moved(case.state.drs, vm)})" for vm in foreign),
            hint=evacuation.HINT,
            flags=flags,
        )
    return Refusal(
        code="ats.foreign-vms",
        target=case.state.name,
        message="VMs run there that are not this cluster's",
        details=tuple(map(name_with_owner, foreign)),
        hint="move them away" if case.ready else _FOREIGN_HINT,
        flags=flags,
    )


def _hard_stop(case: HostPlanInput, running: tuple[VmOnHost, ...]) -> tuple[str, ...]:
    """Return the option that stops VMs whose guests nobody can ask to shut down, when there are such."""
    deaf = not case.ready and not case.leave.power_off and not all(vm.tools for vm in running)
    return ("--allow-power-off",) if deaf else ()


def _find_unread_settings(case: HostPlanInput) -> Iterator[Refusal]:
    """Yield what the nodes need there and nobody could read: it would stay as it is."""
    for fact in case.facts.facts:
        if fact.state is SettingState.UNKNOWN:
            yield Refusal(
                code="host.not-known",
                target=case.state.name,
                message=f"{fact.name} of {fact.on or 'the host'} could not be read: {fact.why}",
                hint="; ".join(fact.manual_steps) or "look at the host in vCenter",
            )


def warnings(case: HostPlanInput) -> Iterator[str]:
    """Yield what is no refusal."""
    state = case.state
    if case.warning and not case.revert:
        yield case.warning
    if case.revert and (left := _left_by_revert(case)):
        yield f"what was changed there besides, as by [host_config], stays so and stays written down: {', '.join(left)}"
    if state.lockdown.mode is not LockdownMode.DISABLED and not case.user and any(map(_takes_shell, case.facts.facts)):
        yield f"it is in {state.lockdown.words}: SSH is for its exception users alone"
    if keepers := _keepers(case):
        yield f"{' and '.join(keepers)} may set back what is changed here at the next remediation; put it there, too"
    if state.maintenance and not (case.record and case.record.maintenance):
        yield "it is in maintenance mode, which vsml did not begin: it stays so"
    for vm in state.vms:
        if vm.resume not in {None, state.name}:
            yield f"{vm.name} was stopped for a run on {vm.resume}, and is now here"


_SHOWN = 3


def observations(case: HostPlanInput) -> Iterator[Diagnostic]:
    """Yield what a host differs in already from what else decides on it, before it is begun.

    The next remediation would change that too, and takes a host that is in maintenance mode for its chance.
    """
    if not _changes_settings(case):
        return
    desired, name = case.state.desired, case.state.name
    if desired.profile_differs:
        yield Diagnostic(
            severity=Severity.INFO,
            code="host.profile-differs",
            target=name,
            message=f"it is not as its host profile says: {list_first(desired.profile_differs, _SHOWN)}",
            hint=f"remediate it first, or update the profile: Test-VMHostProfileCompliance -VMHost {name} (PowerCLI)",
        )
    if desired.image_differs:
        yield Diagnostic(
            severity=Severity.INFO,
            code="host.image-differs",
            target=name,
            message="its software is not that of its cluster's image, by vSphere Lifecycle Manager's last check",
            hint="remediate it first (Updates > Hosts > Image): what is not in the image goes at the next remediation",
        )


def _changes_settings(case: HostPlanInput) -> bool:
    return any(not fact.is_configured and fact.can_be_set for fact in case.facts.facts)


def _keepers(case: HostPlanInput) -> list[str]:
    """Return what else decides on the settings that would be changed, in words."""
    changed = _changes_settings(case)
    named = {
        "the host profile": case.state.desired.profile,
        "vSphere Configuration Profiles of the cluster": case.state.desired.configuration,
    }
    return [words for words, there in named.items() if there and changed]


def _left_by_revert(case: HostPlanInput) -> list[str]:
    """Return, each with its former value, the settings that no fact is about: `enable-ats` does not read them."""
    seen = {fact.key for fact in case.facts.facts}
    former = case.record.former if case.record else {}
    return [f"{key} (before: {value or 'nothing set'})" for key, value in former.items() if key not in seen]
