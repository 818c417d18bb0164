"""Bounds a whole exchange with a server, one request and its answer, by time and by size.

A socket's own timeout counts from one read to the next: a server that sends a byte a second never runs into it.
"""

from __future__ import annotations

import math
import ssl
import time
from http.client import HTTPException, IncompleteRead
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from http.client import HTTPResponse

    from _typeshed import ReadableBuffer, WriteableBuffer

MIB = 1 << 20
# The largest page of a look has the settings of 1,000 VMs or the devices of 100 hosts: below 100 MB.
ANSWER_BYTES = 256 * MIB
_PIECE = 64 << 10


class AnswerTooLargeError(HTTPException):
    """The server sent more than an answer can be."""

    def __init__(self, most: float) -> None:
        super().__init__(f"the answer is larger than {most / MIB:g} MiB")


class BoundedSocket(ssl.SSLSocket):
    """A TLS socket that gives up an exchange when its time is over or too much has come.

    Made by an SSLContext whose `sslsocket_class` it is; unbounded until `bound` is called.
    """

    _deadline = _left = _most = math.inf

    def bound(self, seconds: float, most: float) -> None:
        """Allow so many seconds and so many bytes from now on."""
        self._deadline, self._left, self._most = time.monotonic() + seconds, most, most

    def recv_into(self, buffer: WriteableBuffer, nbytes: int | None = None, flags: int = 0) -> int:
        self._take_what_is_left()
        count = super().recv_into(buffer, nbytes, flags)
        self._left -= count
        if self._left < 0:
            raise AnswerTooLargeError(self._most)
        return count

    def send(self, data: ReadableBuffer, flags: int = 0) -> int:
        self._take_what_is_left()
        return super().send(data, flags)

    def _take_what_is_left(self) -> None:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("timed out")
        if left < math.inf:
            self.settimeout(left)


def read_all(response: HTTPResponse) -> bytes:
    """Return an answer's body; IncompleteRead when it is cut off.

    Read in pieces: http.client makes room at once for as much as a server only announces.
    """
    body = b"".join(iter(lambda: response.read(_PIECE), b""))
    if response.length:
        raise IncompleteRead(body, response.length)
    return body
