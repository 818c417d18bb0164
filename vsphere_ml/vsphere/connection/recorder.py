"""Keeps what goes over a connection to vCenter as exchanges of a site record, redacted before it is kept."""

from __future__ import annotations

import threading
from dataclasses import field
from typing import TYPE_CHECKING

from vsphere_ml.core.site_record.exchanges import SoapExchange
from vsphere_ml.core.site_record.redact_soap import STRUCK
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from vsphere_ml.core.site_record.redact_soap import SoapRedactor

_MIN_SECRET = 4


@dataclass(slots=True)
class Recorder:
    """A `MessageLog`, safe to share between threads: a thread's answer belongs to its last request."""

    redactor: SoapRedactor
    exchanges: list[SoapExchange] = field(default_factory=list)
    _secrets: set[str] = field(default_factory=set, repr=False)
    _asked: dict[int, str] = field(default_factory=dict, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def secret(self, value: str) -> None:
        """Strike out this value wherever it appears from now on."""
        if len(value) >= _MIN_SECRET:
            self._secrets.add(value)

    def write(self, arrow: str, body: bytes | str) -> None:
        """Take one message; `-->` is a request, `<--` the answer to this thread's last one."""
        message = body.decode("utf-8", "replace") if isinstance(body, bytes) else body
        with self._lock:
            for secret in self._secrets:
                message = message.replace(secret, STRUCK)
            redacted = self._redact(message)
            if arrow == "-->":
                self._asked[threading.get_ident()] = redacted
            else:
                request = self._asked.pop(threading.get_ident(), "")
                self.exchanges.append(SoapExchange(request=request, response=redacted))

    def _redact(self, message: str) -> str:
        try:
            return self.redactor.redact(message)
        except ValueError:  # what a proxy says in vCenter's place, or half an answer
            return f"<unreadable>{len(message)} characters that are no XML</unreadable>"

    def close(self) -> None:
        """Keep what there is."""
