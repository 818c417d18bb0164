"""What a command printed, kept within bounds, after the line that says that it is the command's."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vsphere_ml.ssh.session.log import LogLines


class Printed:
    """Takes both outputs as they come; keeps the last `limit` bytes of each, and hands lines on."""

    def __init__(self, limit: int, out: LogLines | None = None, err: LogLines | None = None) -> None:
        self._limit = limit
        self._lines = (out, err)
        self._buffers = (bytearray(), bytearray())
        self._mark = b""
        self._since = time.monotonic()
        self.begun = False

    def expect(self, mark: bytes) -> None:
        """Take for the command's what comes after this line; a login shell may have printed before."""
        self._mark = mark

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._since

    @property
    def last_words(self) -> str:
        """Return the end of what was printed, for a person: to standard error, and before the command began."""
        parts = (self._buffers[1], b"" if self.begun else self._buffers[0])
        return "\n".join(filter(None, (part.decode("utf-8", "replace").strip() for part in parts)))[-1000:]

    def out(self, data: bytes) -> None:
        if self.begun:
            self._keep(0, data)
            return
        head, self.begun, rest = self._split(data)
        self._buffers[0][:] = b"" if self.begun else head[-2 * len(self._mark) :]
        if self.begun:
            self._keep(0, rest)

    def err(self, data: bytes) -> None:
        self._keep(1, data)

    def end(self) -> None:
        for lines in self._lines:
            if lines is not None:
                lines.end()

    @property
    def all_out(self) -> bytes:
        return bytes(self._buffers[0])

    def texts(self) -> tuple[str, str]:
        out, err = (bytes(each).decode("utf-8", "replace") for each in self._buffers)
        return out, err

    def _split(self, data: bytes) -> tuple[bytes, bool, bytes]:
        head, found, rest = (bytes(self._buffers[0]) + data).partition(self._mark)
        return head, bool(found), rest

    def _keep(self, which: int, data: bytes) -> None:
        remaining, lines = self._buffers[which], self._lines[which]
        remaining += data
        del remaining[: max(0, len(remaining) - self._limit)]
        if lines is not None and data:
            lines.feed(data)
