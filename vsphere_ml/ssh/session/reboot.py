"""A reboot that is believed only when the guest answers with another boot id."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from vsphere_ml.core.errors import GuestError
from vsphere_ml.ssh.session import errors

if TYPE_CHECKING:
    from vsphere_ml.core.ports.vcenter import Clock
    from vsphere_ml.ssh.session.shell import SshShell

PAUSE_S = 2.0
BOOT_ID = {"boot": "cat /proc/sys/kernel/random/boot_id"}
# In the background and a moment later, so that this command can still end well.
COMMAND = "{ sleep 1; systemctl reboot || shutdown -r now || reboot; } </dev/null >/dev/null 2>&1 & echo rebooting"


def reboot(shell: SshShell, clock: Clock, deadline_s: float) -> None:
    """Reboot the guest; GuestError `guest.reboot-timeout`, with the last answer, when it is not back in time."""
    before = _boot(shell)
    shell.run(COMMAND)
    shell.close()
    until = clock.now() + deadline_s
    seen = "it had not gone down yet"
    while clock.now() < until:
        clock.sleep(PAUSE_S)
        try:
            if _boot(shell) != before:
                return
            seen = "it answers, and has not rebooted"
        except GuestError as error:
            seen = error.message
        with suppress(Exception):
            shell.close()
    raise errors.not_back(shell.target, deadline_s, seen)


def _boot(shell: SshShell) -> str:
    answer = shell.ask(BOOT_ID)["boot"]
    if not answer.ok:
        raise errors.command_error(shell.target, BOOT_ID["boot"], answer.status, (answer.err,), shell.log)
    return answer.text
