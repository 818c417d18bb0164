"""What a plan needs a person's consent for, beyond a yes: options of the command, all named at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.core.diagnostics import Refusal
from vsphere_ml.core.errors import NotPossible
from vsphere_ml.core.plan.deletions import deleted_vms, stopped_vms
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from vsphere_ml.core.hosts.host_plan import HostPlan
    from vsphere_ml.core.plan.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Consent:
    """What was agreed to in advance. To delete a VM is also to stop it."""

    downtime: bool = False
    deletion: bool = False
    confirmed: bool = True  # by --yes, or by somebody who can be asked; else --yes is named with what is missing


NO_CONSENT = Consent()


def refusals(hosts: Iterable[HostPlan]) -> tuple[Refusal, ...]:
    """Yield why hosts must not be touched, or not without consent."""
    return tuple(each for host in hosts for each in host.refusals)


def not_covered(plan: Plan, consent: Consent) -> Iterator[Refusal]:
    """Yield what a plan would do without consent: running VMs that it stops, VMs that it deletes."""
    going = deleted_vms(plan.changes)
    stops = sorted(stopped_vms(plan.changes) - going)
    if stops and not consent.downtime:
        yield Refusal(
            code="plan.interrupts",
            target=stops[0],
            message="the plan stops VMs that run",
            details=tuple(stops),
            flags=("--allow-downtime",),
        )
    if going and not consent.deletion:
        names = sorted(going)
        yield Refusal(
            code="plan.deletes",
            target=names[0],
            message="the plan deletes VMs whose nodes are not in the file any more",
            details=tuple(names),
            flags=("--allow-delete",),
        )


def refuse(reasons: Sequence[Refusal], *, confirmed: bool = True) -> None:
    """Raise NotPossible when there are reasons, with every one; the hint names all options that are missing.

    One that is not `confirmed` needs `--yes` beside them.
    """
    if not reasons:
        return
    first = reasons[0]
    flags = dict.fromkeys(flag for each in reasons for flag in each.flags)
    consent = bool(flags) and all(each.flags for each in reasons)
    if not confirmed:
        flags["--yes"] = None
    raise NotPossible(
        str(first),
        code=first.code,
        target=first.target,
        hint=f"add {' '.join(flags)} when that is wanted" if consent else first.hint,
        details=tuple(map(str, reasons[1:])),
    )
