"""Decides which server certificate is believed: by a CA, by its SHA-256 thumbprint, or (when asked) any."""

from __future__ import annotations

import hashlib
import hmac
import re
import socket
import ssl
from http.client import HTTPSConnection
from typing import TYPE_CHECKING, Any

from vsphere_ml.core.bounded_file import chunks
from vsphere_ml.core.errors import ConfigError, VSphereError
from vsphere_ml.lazy_dataclass import dataclass
from vsphere_ml.vsphere.connection.bounds import BoundedSocket

if TYPE_CHECKING:
    from pathlib import Path

_LARGEST = 64 << 20  # bytes; all CAs of a distribution are a few hundred KiB
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """What makes a server's certificate good. A thumbprint replaces the check by CA and host name."""

    ca_file: Path | None = None
    thumbprint: str | None = None
    insecure: bool = False

    def context(self) -> ssl.SSLContext:
        """Return the TLS settings; ConfigError when the CA file cannot be used."""
        # Never left to pyvmomi: without a context it does not verify localhost at all (9.1).
        try:
            if self.ca_file is not None:
                next(chunks(self.ca_file, _LARGEST), b"")  # OpenSSL would wait for what a FIFO brings
            context = ssl.create_default_context(cafile=self.ca_file)
            context.sslsocket_class = BoundedSocket
        except (OSError, ssl.SSLError) as error:
            # What OpenSSL says of a file without a certificate is a line of its own source.
            why = "it holds no certificate in PEM form" if isinstance(error, ssl.SSLError) else error.strerror
            raise ConfigError(
                f"the CA file cannot be read: {why}",
                code="vcenter.ca-file",
                target=str(self.ca_file),
                hint="`vcenter.ca_file` must name a PEM file with the CA's certificate",
            ) from error
        if self.insecure or self.thumbprint:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context

    @property
    def pin(self) -> str | None:
        """Return the pinned SHA-256 as bare lower-case digits; ConfigError when it is not one."""
        if self.thumbprint is None or self.insecure:
            return None
        digits = self.thumbprint.replace(":", "").strip().lower()
        if not _SHA256.fullmatch(digits):
            raise ConfigError(
                "the thumbprint is not a SHA-256 one",
                code="vcenter.thumbprint",
                target=self.thumbprint,
                hint="give 32 colon-separated pairs, as `openssl x509 -noout -fingerprint -sha256` prints them",
            )
        return digits


class PinMismatchError(ssl.SSLError):
    """The server's certificate is not the pinned one."""


class PinnedConnection(HTTPSConnection):
    """HTTPS that checks a pinned certificate before the first request leaves.

    pyvmomi 9.1 compares a thumbprint only after the CA check has failed, and not at all when that check is off.

    Each exchange, from the request to the answer's last byte, takes no longer than `timeout` in seconds, and no more
    than `most` bytes come.
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        context: ssl.SSLContext,
        timeout: float,
        pin: str | None = None,
        most: float,
    ) -> None:
        super().__init__(host, port, context=context, timeout=timeout)
        self._pin, self._timeout_s, self._most = pin, timeout, most
        self._socket: socket.socket | None = None

    def request(self, method: str, url: str, body: Any = None, headers: Any = None, **kwargs: Any) -> None:
        if self.sock is None:
            self.connect()
        self.renew()
        super().request(method, url, body, headers or {}, **kwargs)

    def renew(self) -> None:
        """Count time and bytes anew, as for the next part of a file that comes in parts."""
        if isinstance(self._socket, BoundedSocket):
            self._socket.bound(self._timeout_s, self._most)

    def connect(self) -> None:
        super().connect()
        self._socket = self.sock  # http.client forgets its own when the server announces to close
        if self._pin is None:
            return
        certificate = self.sock.getpeercert(binary_form=True)
        if not hmac.compare_digest(_thumbprint(certificate or b"", self._pin), self._pin):
            self.close()
            raise PinMismatchError("the certificate is not the pinned one")


def _thumbprint(certificate: bytes, like: str) -> str:
    """Return the thumbprint by SHA-256; by SHA-1 where vCenter itself gave one, which it has of its hosts."""
    algorithm = hashlib.sha256 if _SHA256.fullmatch(like) else hashlib.sha1
    return algorithm(certificate).hexdigest()


def untrusted_error(host: str, port: int, trust: Trust, cause: ssl.SSLError, timeout_s: float) -> VSphereError:
    """Return the error for a certificate that was not believed, with what would make it so."""
    seen = _seen_thumbprint(host, port, timeout_s)
    why = getattr(cause, "verify_message", "") or getattr(cause, "reason", "") or cause.args[-1]
    hint = "set `vcenter.ca_file` to the CA's certificate (vCenter offers it at /certs/download.zip)"
    if seen:
        hint += f', or, once you have checked it, `vcenter.thumbprint = "{seen}"`'
    return VSphereError(
        f"the certificate of {host}:{port} is not trusted: {why}",
        code="vcenter.untrusted",
        target=f"{host}:{port}",
        hint=hint,
        details=((f"pinned: {trust.thumbprint}", f"seen: {seen}") if trust.thumbprint else ()),
    )


def _seen_thumbprint(host: str, port: int, timeout_s: float) -> str | None:
    # Only to be shown: nothing is sent over this connection.
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        with (
            socket.create_connection((host, port), timeout_s) as raw,
            context.wrap_socket(raw, server_hostname=host) as secure,
        ):
            digest = hashlib.sha256(secure.getpeercert(binary_form=True) or b"").hexdigest().upper()
    except OSError:
        return None
    return ":".join(digest[i : i + 2] for i in range(0, len(digest), 2))
