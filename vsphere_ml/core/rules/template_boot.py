"""What one boot of a template's clone tells: what to ask in the guest, and what its answers mean."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from vsphere_ml.core.model.spec import FirstBootBy
from vsphere_ml.core.rules.template_facts import TemplateFact, TemplateVerdict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vsphere_ml.core.errors import VsmlError
    from vsphere_ml.core.model.guest import CommandAnswer
    from vsphere_ml.core.model.spec import ClusterSpec

READY, MISSING, UNKNOWN = TemplateVerdict.READY, TemplateVerdict.MISSING, TemplateVerdict.UNKNOWN
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


def booted_facts(seen: Mapping[str, CommandAnswer], node: str, spec: ClusterSpec) -> tuple[TemplateFact, ...]:
    """Return what the answers to `PROBES` of a clone say, whose first boot data calls it `node`."""
    facts = [_answers(), _tools(seen["tools"]), _efi(seen["efi"]), _root(seen["root"], seen["growpart"])]
    if spec.guest.first_boot is not FirstBootBy.NONE:
        facts.insert(1, _first_boot(seen["name"], node))
    if spec.guest.playbooks:
        facts.append(_headers(seen["headers"], seen["offered"]))
    return tuple(facts)


def silent_facts(error: VsmlError) -> tuple[TemplateFact, ...]:
    """Return what is known of a clone that could not be entered."""
    return (TemplateFact(name="answers by SSH", verdict=MISSING, observed=error.message, hint=error.hint),)


def combine(known: tuple[TemplateFact, ...], booted: tuple[TemplateFact, ...]) -> tuple[TemplateFact, ...]:
    """Return all facts, those of a boot in the place of what vCenter knows of the same."""
    by_boot = {fact.name: fact for fact in booted}
    return (*(by_boot.pop(fact.name, fact) for fact in known), *by_boot.values())


def _answers() -> TemplateFact:
    return TemplateFact(name="answers by SSH", verdict=READY, observed="the clone was entered")


def _first_boot(answer: CommandAnswer, node: str) -> TemplateFact:
    """Judge by the name that the guest was told: what reads the data differs from system to system."""
    right = answer.text.partition(".")[0] == node
    return TemplateFact(
        name="cloud-init's VMware datasource",
        verdict=READY if right else MISSING,
        observed=f"the clone calls itself {answer.text or 'nothing'}; its first boot data says {node}",
        hint=""
        if right
        else "in the template: `datasource_list: [VMware]` in /etc/cloud/cloud.cfg.d; `cloud-init clean`",
    )


def _tools(answer: CommandAnswer) -> TemplateFact:
    return TemplateFact(
        name="VMware Tools",
        verdict=READY if answer.ok else MISSING,
        observed="they answer" if answer.ok else "vmtoolsd does not run",
        hint="" if answer.ok else "in the template: `apt-get install open-vm-tools`",
    )


def _efi(answer: CommandAnswer) -> TemplateFact:
    observed = "its kernel was started by EFI" if answer.ok else "its kernel tells of no EFI"
    return TemplateFact(name="EFI in the guest", verdict=READY if answer.ok else UNKNOWN, observed=observed)


def _root(answer: CommandAnswer, growpart: CommandAnswer) -> TemplateFact:
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
    return TemplateFact(name="root file system that grows", verdict=verdict, observed=observed, hint=hint)


def _headers(there: CommandAnswer, offered: CommandAnswer) -> TemplateFact:
    folder = there.text
    if there.ok:
        return TemplateFact(name="kernel headers", verdict=READY, observed=f"{folder} is there")
    if offered.ok:
        return TemplateFact(name="kernel headers", verdict=READY, observed="not there, and apt offers them")
    return TemplateFact(
        name="kernel headers",
        verdict=MISSING,
        observed=f"{folder} is not there, and apt offers no package",
        hint="in the template: `apt-get update && apt-get install linux-headers-$(uname -r)`, or a kernel that apt has",
    )
