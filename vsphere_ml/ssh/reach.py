"""Waiting until guests answer SSH, all at once, each until the same deadline."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from vsphere_ml.core.errors import GuestError
from vsphere_ml.ssh.session.connect import close, connect
from vsphere_ml.ssh.threads import run_at_once

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from vsphere_ml.core.ports.vcenter import Clock
    from vsphere_ml.ssh.session.target import SshTarget

PAUSE_S = 2.0
PARALLEL = 32


def sign_in(target: SshTarget) -> None:
    """Sign in and leave again."""
    close(connect(target))


def wait_for(
    targets: Sequence[SshTarget],
    deadline_s: float,
    clock: Clock,
    *,
    parallel: int = PARALLEL,
    attempt: Callable[[SshTarget], None] = sign_in,
) -> Mapping[str, GuestError]:
    """Return, by name, why guests did not answer in time; empty when all did.

    A changed key is tried again like a refused connection: a first boot shows the template's keys before its own, and
    nobody signs in to a host whose key is not the pinned one.
    """
    until = clock.now() + deadline_s
    errors = run_at_once(targets, lambda target: _wait_for_one(target, until, clock, attempt), parallel)
    return {target.name: error for target, error in zip(targets, errors, strict=True) if error is not None}


def _wait_for_one(
    target: SshTarget, until: float, clock: Clock, attempt: Callable[[SshTarget], None]
) -> GuestError | None:
    """Return None when it answered, else the last thing that stood in the way."""
    while True:
        timeouts = max(1.0, min(target.timeout_s, until - clock.now()))
        try:
            attempt(replace(target, timeout_s=timeouts))
        except GuestError as error:
            if clock.now() + PAUSE_S > until:
                return error
            clock.sleep(PAUSE_S)
        else:
            return None
