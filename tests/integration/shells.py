"""Shells over SSH for tests, signed in before anything is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.ssh.session.shell import SshShell

if TYPE_CHECKING:
    from pathlib import Path

    from vsphere_ml.core.ports.vcenter import Clock
    from vsphere_ml.ssh.session.target import SshTarget


def open_shell(target: SshTarget, log: Path, clock: Clock) -> SshShell:
    """Return a shell on a signed-in connection. GuestError when it cannot be."""
    shell = SshShell(target, log, clock)
    shell.open()
    return shell
