"""One command over a channel of its own: bytes in, bytes out as they come, an exit status at the end.

Fabric's own runner decodes what it reads and polls every 10 ms; answers may be binary, and are to come quickly.
"""

from __future__ import annotations

import contextlib
import select
import time
from typing import TYPE_CHECKING, Any

import paramiko

if TYPE_CHECKING:
    from collections.abc import Callable

CHUNK = 32768
TICK_S = 0.05  # between two tries to send, while the guest takes no more
EXIT_TIMEOUT_S = 30.0  # between the end of the output and the exit status


class ConnectionCut(Exception):  # noqa: N818 - an event, reported by whoever knows what it cut
    """The connection ended before the command did."""


class DeadlinePassed(Exception):  # noqa: N818
    """The deadline passed before the command ended."""


def execute(
    transport: paramiko.Transport,
    command: str,
    stdin: bytes,
    *,
    deadline_s: float,
    out: Callable[[bytes], None],
    err: Callable[[bytes], None],
) -> int:
    """Return the command's exit status, -1 when a signal ended it. Raises ConnectionCut and DeadlinePassed."""
    until = time.monotonic() + deadline_s
    try:
        channel = transport.open_session(timeout=min(deadline_s, EXIT_TIMEOUT_S))
        with contextlib.closing(channel):
            channel.exec_command(command)
            _exchange(channel, memoryview(stdin), until, (out, err))
            return _status(channel, transport, until)
    except TimeoutError as error:
        raise DeadlinePassed from error
    except (paramiko.SSHException, OSError, EOFError) as error:
        if "timeout" in str(error).lower():
            raise DeadlinePassed from error
        raise ConnectionCut(str(error)) from error


def _exchange(channel: Any, stdin: memoryview, until: float, sinks: tuple[Callable[[bytes], None], ...]) -> None:
    """Send and receive until the command closes its outputs."""
    sending = True
    while True:
        if sending:
            stdin = _send(channel, stdin)
            sending = bool(stdin)
            if not sending:
                channel.shutdown_write()
        _wait(channel, until, tick=sending)
        ended = channel.eof_received or channel.closed
        _drain(channel, sinks)
        if ended:
            return


def _send(channel: Any, stdin: memoryview) -> memoryview:
    """Send what the guest takes now; return the rest. A command that reads no further is no error."""
    while stdin and channel.send_ready():
        try:
            stdin = stdin[channel.send(stdin[:CHUNK]) :]
        except OSError:
            return stdin[len(stdin) :]
    return stdin


def _wait(channel: Any, until: float, *, tick: bool) -> None:
    """Wait for output, for the end of it, or, while there is more to send, a moment."""
    left = until - time.monotonic()
    if left <= 0:
        raise DeadlinePassed
    ready, _, _ = select.select([channel], [], [], min(TICK_S, left) if tick else left)
    if not ready and not tick:
        raise DeadlinePassed


def _drain(channel: Any, sinks: tuple[Callable[[bytes], None], ...]) -> None:
    out, err = sinks
    while channel.recv_ready():
        out(channel.recv(CHUNK))
    while channel.recv_stderr_ready():
        err(channel.recv_stderr(CHUNK))


def _status(channel: Any, transport: paramiko.Transport, until: float) -> int:
    channel.status_event.wait(max(0.0, min(EXIT_TIMEOUT_S, until - time.monotonic())))
    if channel.exit_status_ready() and (channel.exit_status != -1 or transport.is_active()):
        return int(channel.exit_status)
    if transport.is_active():
        raise DeadlinePassed
    raise ConnectionCut
