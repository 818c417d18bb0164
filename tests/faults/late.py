"""Answers that come too late, without anybody waiting for that: a client's time is over when the proxy holds one back.

So a timeout can be as long as a busy machine needs, and a call that gets into this trouble costs a moment.
"""

from __future__ import annotations

import select
import time
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from vsphere_ml.vsphere.connection.bounds import BoundedSocket

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

    from tests.integration.proxy import Exchange

_NOTICED_S = 0.1  # how soon a client sees that its time is over
_CLIENTS: WeakValueDictionary[int, HurriedSocket] = WeakValueDictionary()  # by their ports


class HurriedSocket(BoundedSocket):
    """A bounded socket whose time can be taken away while it waits."""

    def bound(self, seconds: float, most: float) -> None:
        _CLIENTS[self.getsockname()[1]] = self
        super().bound(seconds, most)

    def recv_into(self, buffer: WriteableBuffer, nbytes: int | None = None, flags: int = 0) -> int:
        while not self.pending() and not select.select([self], [], [], _NOTICED_S)[0]:
            self._take_what_is_left()
        return super().recv_into(buffer, nbytes, flags)

    def hurry(self) -> None:
        """Leave no time for the exchange that goes on."""
        self._deadline = time.monotonic()


def late(exchange: Exchange) -> None:
    """Hold the answer back for longer than its client waits."""
    exchange.forward()
    _CLIENTS[exchange.handler.client_address[1]].hurry()
    exchange.until_left()
