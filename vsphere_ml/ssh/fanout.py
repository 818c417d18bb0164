"""The same work in many guests at once, each on a connection and in a thread of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from vsphere_ml.core.errors import VsmlError
from vsphere_ml.ssh.session.shell import SshShell
from vsphere_ml.ssh.threads import run_at_once

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from vsphere_ml.core.plan.outcome import InGuest
    from vsphere_ml.core.ports.vcenter import Clock
    from vsphere_ml.ssh.session.target import SshTarget

T = TypeVar("T")
PARALLEL = 32


def ignore_outcome(_name: str, _outcome: object) -> None:
    """Report to nobody."""


def in_each(
    targets: Sequence[SshTarget],
    logs: Path,
    clock: Clock,
    work: Callable[[SshShell], T],
    *,
    parallel: int = PARALLEL,
    ended: Callable[[str, T | VsmlError], None] = ignore_outcome,
) -> Mapping[str, T | VsmlError]:
    """Return each guest's result or error by its name. One guest's failure leaves the others alone.

    A guest's log is `logs/NAME.log`; `ended` is as for `Guests.each`. Raises Interrupted on Ctrl-C, which leaves the
    guests and names the commands that may go on in them.
    """
    shells = {target.name: SshShell(target, logs / f"{target.name}.log", clock) for target in targets}

    def one(target: SshTarget) -> T | VsmlError:
        outcome: T | VsmlError
        try:
            with shells[target.name] as shell:
                shell.open()
                outcome = work(shell)
        except VsmlError as error:
            outcome = error
        ended(target.name, outcome)
        return outcome

    try:
        return dict(zip(shells, run_at_once(targets, one, parallel), strict=True))
    except KeyboardInterrupt as interrupt:
        from vsphere_ml.core.plan.outcome import Interrupted  # noqa: PLC0415 - and every change of a plan

        raise Interrupted(guests=_left(shells.values())) from interrupt


def _left(shells: Iterable[SshShell]) -> tuple[InGuest, ...]:
    """Leave all guests at once; return what goes on in them."""
    doing = [(shell, shell.leave()) for shell in shells]
    from vsphere_ml.core.plan.outcome import InGuest  # noqa: PLC0415 - as above

    return tuple(InGuest(node=shell.name, command=what, log=str(shell.log)) for shell, what in doing if what)
