"""Connections to guests that are begun before paramiko is imported, so that each guest's sshd starts meanwhile."""

from __future__ import annotations

import errno
import ipaddress
import os
import selectors
import socket
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class ConnectionsAhead:
    """TCP connections that were begun and are not waited for, each to be taken once, by whom it was begun for.

    sshd forks and reads its keys when somebody connects, which costs it as much as the sign-in; the client imports for
    as long. Nothing is sent before the connection is taken, and nothing is known of whether it came about.
    """

    def __init__(self) -> None:
        self._begun: dict[tuple[str, int], socket.socket] = {}

    def begin(self, addresses: Iterable[str], port: int) -> None:
        """Begin to connect to these; to those that are names nothing is begun, since to resolve one takes time."""
        for address in addresses:
            if (family := _family(address)) is not None and (address, port) not in self._begun:
                with suppress(OSError):  # whoever connects meets it once more, and tells it
                    self._begun[address, port] = _begin(family, address, port)

    def take(self, address: str, port: int, timeout_s: float) -> socket.socket | None:
        """Return the connection that was begun, once it stands; None where none was. OSError when it cannot be had."""
        stream = self._begun.pop((address, port), None)
        if stream is None:
            return None
        try:
            _wait_connected(stream, timeout_s)
        except BaseException:
            stream.close()
            raise
        return stream

    def close(self) -> None:
        """Close those that nobody took."""
        while self._begun:
            self._begun.popitem()[1].close()


def _family(address: str) -> socket.AddressFamily | None:
    try:
        version = ipaddress.ip_address(address).version
    except ValueError:
        return None
    return socket.AF_INET if version == 4 else socket.AF_INET6  # noqa: PLR2004 - of IP


def _begin(family: socket.AddressFamily, address: str, port: int) -> socket.socket:
    stream = socket.socket(family, socket.SOCK_STREAM)
    stream.setblocking(False)
    # What fails at once, as where there is no route, is no longer said of the socket afterwards.
    if (number := stream.connect_ex((address, port))) not in {0, errno.EINPROGRESS}:
        stream.close()
        raise OSError(number, os.strerror(number))
    return stream


def _wait_connected(stream: socket.socket, timeout_s: float) -> None:
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_WRITE)
        if not selector.select(timeout_s):
            raise TimeoutError
    if number := stream.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
        raise OSError(number, os.strerror(number))
