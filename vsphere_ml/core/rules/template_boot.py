"""What one boot of a template's clone shows: what to ask in the guest, and what its answers mean."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from vsphere_ml.core.diagnostics import Diagnostic, Severity
from vsphere_ml.core.model.spec import FirstBootBy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vsphere_ml.core.errors import VsmlError
    from vsphere_ml.core.model.guest import CommandAnswer
    from vsphere_ml.core.model.spec import ClusterSpec

READY, MISSING, UNKNOWN = Severity.OK, Severity.ERROR, Severity.UNKNOWN
_ROOT = "findmnt -nvo SOURCE /"
PROBES: Mapping[str, str] = MappingProxyType(
    {
        "name": "hostname",
        "tools": "pgrep -x vmtoolsd || vmtoolsd --cmd 'info-get guestinfo.vsml.hostkeys'",
        "efi": "test -d /sys/firmware/efi && echo efi",
        "headers": 'echo "/lib/modules/$(uname -r)/build"; test -d "/lib/modules/$(uname -r)/build"',
        "offered": 'apt-cache policy "linux-headers-$(uname -r)" | grep Candidate: | grep -v none',
        "root": f'lsblk -rno TYPE "$({_ROOT})" && {_ROOT}',
        "growpart": "command -v growpart",
    }
)


def booted_facts(seen: Mapping[str, CommandAnswer], node: str, spec: ClusterSpec) -> tuple[Diagnostic, ...]:
    """Return what the answers to `PROBES` of a clone say, whose first boot data calls it `node`."""
    facts = [_answers(), _tools(seen["tools"]), _efi(seen["efi"]), _root(seen["root"], seen["growpart"])]
    if spec.guest.first_boot is not FirstBootBy.NONE:
        facts.insert(1, _first_boot(seen["name"], node))
    if spec.guest.playbooks:
        facts.append(_headers(seen["headers"], seen["offered"]))
    return tuple(facts)


def silent_facts(error: VsmlError) -> tuple[Diagnostic, ...]:
    """Return what is known of a clone that could not be entered."""
    return (Diagnostic(target="answers by SSH", severity=MISSING, message=error.message, hint=error.hint),)


def combine(known: tuple[Diagnostic, ...], booted: tuple[Diagnostic, ...]) -> tuple[Diagnostic, ...]:
    """Return all facts, those of a boot in the place of what vCenter knows of the same."""
    by_boot = {fact.target: fact for fact in booted}
    return (*(by_boot.pop(fact.target, fact) for fact in known), *by_boot.values())


def _answers() -> Diagnostic:
    return Diagnostic(target="answers by SSH", severity=READY, message="the clone was entered")


def _first_boot(answer: CommandAnswer, node: str) -> Diagnostic:
    """Judge by the name that the guest was given: what reads the data differs from system to system."""
    right = answer.text.partition(".")[0] == node
    return Diagnostic(
        target="cloud-init's VMware datasource",
        severity=READY if right else MISSING,
        message=f"the clone calls itself {answer.text or 'nothing'}; its first boot data says {node}",
        hint=""
        if right
        else "in the template: `datasource_list: [VMware]` in /etc/cloud/cloud.cfg.d; `cloud-init clean`",
    )


def _tools(answer: CommandAnswer) -> Diagnostic:
    return Diagnostic(
        target="VMware Tools",
        severity=READY if answer.ok else MISSING,
        message="they answer" if answer.ok else "vmtoolsd does not run",
        hint="" if answer.ok else "in the template: `apt-get install open-vm-tools`",
    )


def _efi(answer: CommandAnswer) -> Diagnostic:
    observed = "its kernel was started by EFI" if answer.ok else "its kernel tells of no EFI"
    return Diagnostic(target="EFI in the guest", severity=READY if answer.ok else UNKNOWN, message=observed)


def _root(answer: CommandAnswer, growpart: CommandAnswer) -> Diagnostic:
    """Judge whether cloud-init grows the root file system: a partition, by growpart (cloud-init, module growpart)."""
    kind, _, device = answer.text.partition("\n")
    if not answer.ok:
        verdict, observed, hint = UNKNOWN, "the device of / is not known", f"in a clone of it: `lsblk; {_ROOT}`"
    elif kind != "part":
        verdict, observed = MISSING, f"/ is on {device}, of type {kind}: cloud-init grows partitions alone"
        hint = "install the template with / on a partition, or grow it by a playbook: `lvextend -r -l +100%FREE DEVICE`"
    elif not growpart.ok:
        verdict, observed = MISSING, f"/ is on {device}, and there is no growpart"
        hint = "in the template: `apt-get install cloud-guest-utils`"
    else:
        verdict, observed, hint = READY, f"/ is on {device}, a partition", ""
    return Diagnostic(target="root file system that grows", severity=verdict, message=observed, hint=hint)


def _headers(there: CommandAnswer, offered: CommandAnswer) -> Diagnostic:
    folder = there.text
    if there.ok:
        return Diagnostic(target="kernel headers", severity=READY, message=f"{folder} is there")
    if offered.ok:
        return Diagnostic(target="kernel headers", severity=READY, message="not there, and apt offers them")
    return Diagnostic(
        target="kernel headers",
        severity=MISSING,
        message=f"{folder} is not there, and apt offers no package",
        hint="in the template: `apt-get update && apt-get install linux-headers-$(uname -r)`, or a kernel that apt has",
    )
