"""Writes SOAP exchanges to a file, with everything secret struck out."""

from __future__ import annotations

import io
import os
import re
import threading
import time
from typing import TYPE_CHECKING, Any, Protocol, TextIO
from xml.sax.saxutils import escape

from vsphere_ml.core.errors import ConfigError
from vsphere_ml.core.site_record.redact_soap import CREDENTIAL_ELEMENTS, STRUCK
from vsphere_ml.vsphere.connection.bounds import read_all
from vsphere_ml.vsphere.connection.tls import PinnedConnection

if TYPE_CHECKING:
    from http.client import HTTPResponse
    from pathlib import Path

_MIN_SECRET = 4  # shorter ones would strike out half the file; elements named for secrets are struck all the same
_SECRET_ELEMENT = re.compile(rf"(<(?:\w+:)?({CREDENTIAL_ELEMENTS})(?:\s[^>]*)?>)[^<]+(</(?:\w+:)?\2>)")
# Login answers with a UserSession, whose key is the session id; tickets come back as bare return values.
_SESSION_KEY = re.compile(r"(<key>)(?:[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{40,})(</key>)", re.IGNORECASE)
_RETURNED_TOKEN = re.compile(
    r"(<(?:Acquire\w*|Clone\w*Session)Response\b.*?>).*?(</(?:Acquire\w*|Clone\w*Session)Response>)", re.DOTALL
)
_METHOD = re.compile(r"<(?:\w+:)?Body[^>]*>\s*<(?:\w+:)?(\w+)")


class MessageLog(Protocol):
    """What records each message that goes over a connection; `secret` names values that it must never keep."""

    def secret(self, value: str) -> None: ...

    def write(self, arrow: str, body: bytes | str) -> None: ...

    def close(self) -> None: ...


class Trace:
    """A trace file; safe to share between threads. `secret` names values that must never reach it."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        self._secrets: set[str] = set()
        try:
            self._file: TextIO = os.fdopen(
                os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w", encoding="utf-8"
            )
        except OSError as error:
            raise ConfigError(
                f"the trace file cannot be written: {error.strerror}", code="trace.file", target=str(path)
            ) from error

    def secret(self, value: str) -> None:
        """Strike out this value wherever it appears from now on."""
        if len(value) >= _MIN_SECRET:
            self._secrets |= {value, escape(value), escape(value, {'"': "&quot;", "'": "&apos;"})}

    def write(self, arrow: str, body: bytes | str) -> None:
        """Write one message: its direction, when, its method, its body."""
        text = self.redact(body.decode("utf-8", "replace") if isinstance(body, bytes) else body)
        method = _METHOD.search(text)
        when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        with self._lock:
            self._file.write(f"{arrow} {when} {method[1] if method else '-'}\n{text}\n\n")
            self._file.flush()

    def redact(self, text: str) -> str:
        for value in self._secrets:
            text = text.replace(value, STRUCK)
        text = _SECRET_ELEMENT.sub(rf"\g<1>{STRUCK}\g<3>", text)
        text = _SESSION_KEY.sub(rf"\g<1>{STRUCK}\g<2>", text)
        return _RETURNED_TOKEN.sub(rf"\g<1>{STRUCK}\g<2>", text)

    def close(self) -> None:
        self._file.close()


class TracedConnection(PinnedConnection):
    """A connection that copies what goes over it into a trace; headers, with their cookies, are left out."""

    def __init__(self, *args: Any, trace: MessageLog, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._trace = trace

    def request(self, method: str, url: str, body: Any = None, headers: Any = None, **kwargs: Any) -> None:
        if body:
            self._trace.write("-->", body)
        super().request(method, url, body, headers or {}, **kwargs)

    def getresponse(self) -> HTTPResponse:
        response = super().getresponse()
        body = read_all(response)
        self._trace.write("<--", body)
        return _Replayed(response, body)  # type: ignore[return-value]


class _Replayed:
    """A response that was read already."""

    def __init__(self, response: HTTPResponse, body: bytes) -> None:
        self._body = io.BytesIO(body)
        self.status, self.reason, self.getheader = response.status, response.reason, response.getheader
        self.length = 0  # of what is still to come

    def read(self, size: int | None = None) -> bytes:
        return self._body.read(size)
