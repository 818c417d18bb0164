"""The training container of a node, as those who make it and those who run in it know it."""

from __future__ import annotations

import shlex

NAME = "vsml-worker"
# The folder that it shares with its guest, under the same path: a benchmark's scripts and what its ranks print.
SHARED = "/var/tmp/vsml-bench"  # noqa: S108 - in guests, each run's folder is made for its user alone

# Whether both see the same folder. A container that was made without it does not, nor one whose guest has had the
# folder cleaned away meanwhile (systemd-tmpfiles, after 30 days): its mount then leads to what nobody can reach.
SHARES = f'there=$(stat -c %d:%i {SHARED}) && [ "$there" = "$(docker exec {NAME} stat -c %d:%i {SHARED} 2>/dev/null)" ]'


def command_in_container(command: str) -> str:
    """Return a command as run in the container."""
    return f"docker exec {NAME} sh -c {shlex.quote(command)}"
