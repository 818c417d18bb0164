"""How to reach a vCenter: where, with which trust, for how long; and what a broken connection means to a person."""

from __future__ import annotations

import math
import re
import socket
import ssl
from dataclasses import replace
from http import HTTPStatus
from http.client import BadStatusLine, HTTPException, IncompleteRead, RemoteDisconnected
from typing import TYPE_CHECKING, Any, TypeVar
from xml.etree import ElementTree as ET
from xml.parsers.expat import ExpatError

from pyVmomi.VmomiSupport import GetServiceVersions, versionIdMap

from vsphere_ml.core.errors import NotPossible, VSphereError
from vsphere_ml.core.plan.describe import clip
from vsphere_ml.vsphere.connection import bounds
from vsphere_ml.vsphere.connection.bounds import MIB, AnswerTooLargeError, read_all
from vsphere_ml.vsphere.connection.required import unexpected_answer
from vsphere_ml.vsphere.connection.soap import HttpStatusError, Stub, UnexpectedAnswerError
from vsphere_ml.vsphere.connection.tls import PinMismatchError, PinnedConnection, Trust, untrusted_error

if TYPE_CHECKING:
    from collections.abc import Callable

    from vsphere_ml.vsphere.connection.trace import MessageLog

T = TypeVar("T")

# What a connection that breaks looks like, and what an answer that is none.
BROKEN = (OSError, HTTPException, ExpatError)
# Nobody is there, or nobody to be believed: asking the same at once gives the same.
_FINAL = (TimeoutError, ConnectionRefusedError, socket.gaierror, ssl.SSLError)
_IDLE_S = 20  # proxies before vCenter drop idle connections; a write over a dropped one cannot be repeated
_POOL = 10
_VERSIONS = "/sdk/vimServiceVersions.xml"
_VERSIONS_BYTES = MIB  # 8.0's has 5 KiB
_API = "urn:vim25"
_POLICY_PATH = "/pbm"
_POLICY_VERSION = "pbm.version.version1"  # of all that is asked there
_OLDEST = (7, 0)
_LONGEST = 120  # characters of a server's own words
# What OpenSSL's reasons say of a port where something else than TLS is spoken.
_NO_TLS = frozenset(
    {"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "HTTPS_PROXY_REQUEST", "UNKNOWN_PROTOCOL", "RECORD_LAYER_FAILURE"}
)
_NO_COMMON_TLS = frozenset(
    {
        "UNSUPPORTED_PROTOCOL",
        "NO_PROTOCOLS_AVAILABLE",
        "TLSV1_ALERT_PROTOCOL_VERSION",
        "SSLV3_ALERT_HANDSHAKE_FAILURE",
    }
)


class VCenterEndpoint:
    """How to reach a vCenter: where, with which trust, how long to wait, and what is written down."""

    def __init__(self, host: str, port: int, trust: Trust, timeout_s: float, trace: MessageLog | None) -> None:
        self.host, self.port, self.trust, self.timeout_s, self.trace = host, port, trust, timeout_s, trace
        self._most = bounds.ANSWER_BYTES
        self._settings: dict[str, Any] = {"context": trust.context(), "pin": trust.pin, "timeout": timeout_s}
        self._scheme: type[PinnedConnection] = PinnedConnection
        if trace is not None:
            from vsphere_ml.vsphere.connection.trace import TracedConnection  # noqa: PLC0415 - few runs write a trace

            self._settings["trace"] = trace
            self._scheme = TracedConnection

    @property
    def name(self) -> str:
        return f"{self.host}:{self.port}"

    def stub(self) -> Stub:
        """Return pyvmomi's end of the wire, in the newest API version both sides speak."""
        return self._make_stub(version=self._version(), poolSize=_POOL, connectionPoolTimeout=_IDLE_S)

    def policy_stub(self, cookie: str) -> Stub:
        """Return a stub of the storage policy service (PBM), in the API session that has this cookie.

        PBM takes the session from the SOAP header `vcSessionCookie` (govmomi's pbm client).
        """
        return self._make_stub(
            path=_POLICY_PATH, version=_POLICY_VERSION, requestContext={"vcSessionCookie": cookie}, poolSize=1
        )

    def _make_stub(self, **more: Any) -> Stub:
        return Stub(
            self._scheme,
            {**self._settings, "most": self._most},
            self._most,
            host=self.host,
            port=self.port,
            acceptCompressedResponses=self.trace is None,
            **more,
        )

    def file_connection(self, timeout_s: float | None = None) -> PinnedConnection:
        """Return a connection for a file, which is as large as it is."""
        settings = {key: self._settings[key] for key in ("context", "pin", "timeout")}
        settings["timeout"] = timeout_s or self.timeout_s
        return PinnedConnection(self.host, self.port, most=math.inf, **settings)

    def host_connection(self, host: str, port: int, thumbprint: str | None) -> PinnedConnection:
        """Return a connection to an ESXi host, whose certificate has this SHA-1 thumbprint by vCenter's word.

        Without one it is verified as vCenter's is; vCenter's own pin is not the host's, so a CA has to know it.
        """
        trust = replace(self.trust, thumbprint=None)
        context = replace(trust, insecure=trust.insecure or bool(thumbprint)).context()
        pin = None if trust.insecure else (thumbprint or "").replace(":", "").lower() or None
        return PinnedConnection(host, port, context=context, pin=pin, timeout=self.timeout_s, most=math.inf)

    def _version(self) -> str:
        # pyVim's own probe has no timeout (9.1), so a silent server would hang it for ever.
        try:
            served = call_twice(lambda: _versions(self._get(_VERSIONS)))
        except BROKEN as error:
            raise self.error(error) from error
        newest = next((version for version in GetServiceVersions("vim25") if versionIdMap[version] in served), None)
        if newest is None:
            raise self._not_vsphere()
        if digits(versionIdMap[newest]) < _OLDEST:
            raise self._too_old(versionIdMap[newest])
        return str(newest)

    def _not_vsphere(self) -> VSphereError:
        return VSphereError(
            f"{self.name} answers, but not as a vCenter does",
            code="vcenter.unreachable",
            target=self.name,
            hint="check host and port in `vcenter.server`",
        )

    def _too_old(self, version: str) -> NotPossible:
        return NotPossible(
            f"{self.name} is a vSphere {version}, and vsml needs vSphere 7.0 or newer",
            code="vcenter.too-old",
            target=self.name,
            hint="name a vCenter of vSphere 7.0 or newer in `vcenter.server`",
        )

    def _get(self, path: str) -> bytes:
        connection = self._scheme(self.host, self.port, most=_VERSIONS_BYTES, **self._settings)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            if response.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
                raise HttpStatusError(response)
            body = read_all(response)
        finally:
            connection.close()
        return body if response.status == HTTPStatus.OK else b""

    def error(self, error: BaseException) -> VSphereError:
        """Return what a broken connection means to a person."""
        if isinstance(error, (PinMismatchError, ssl.SSLCertVerificationError)):
            return untrusted_error(self.host, self.port, self.trust, error, self.timeout_s)
        if isinstance(error, TimeoutError):
            return VSphereError(
                f"{self.name} did not answer within {self.timeout_s:g} s",
                code="vcenter.timeout",
                target=self.name,
                hint="check the address, the network and firewalls between; `--timeout` gives it longer",
            )
        if isinstance(error, (UnexpectedAnswerError, AnswerTooLargeError, ExpatError)):
            return unexpected_answer(
                f"{self.name} answered, but {_words(error)}",
                self.name,
                "run the command again; if it persists, check for a proxy on the way to vCenter",
            )
        return VSphereError(
            f"{self.name} cannot be reached: {_words(error)}",
            code="vcenter.unreachable",
            target=self.name,
            hint=_hint(error),
        )

    def close(self) -> None:
        if self.trace is not None:
            self.trace.close()


def call_twice(call: Callable[[], T]) -> T:
    """Return `call()`, tried once more when the connection broke; not when nobody is there to be asked again."""
    try:
        return call()
    except _FINAL:
        raise
    except BROKEN:
        return call()


def digits(version: str) -> tuple[int, ...]:
    """Return the numbers of a version."""
    return tuple(int(part) for part in re.findall(r"\d+", version))


def _versions(document: bytes) -> frozenset[str]:
    """Return the API versions that a vCenter's list names, older ones included; none when it is no such list."""
    if _API.encode() not in document:
        return frozenset()
    try:
        root = ET.fromstring(document)  # noqa: S314 - of at most 1 MiB; expat itself bounds what entities add
    except ET.ParseError as error:
        raise UnexpectedAnswerError("its list of API versions is cut off, or no XML") from error
    spaces = (each for each in root.iter("namespace") if each.findtext("name") == _API)
    return frozenset(version.text or "" for space in spaces for version in space.iter("version"))


def _words(error: BaseException) -> str:  # noqa: PLR0911 - one line a kind
    match error:
        case socket.gaierror():
            return "the name cannot be resolved"
        case ssl.SSLError():
            return _tls_words(error)
        case RemoteDisconnected() | ConnectionResetError() | BrokenPipeError() | ConnectionAbortedError():
            return "it closed the connection without an answer"
        case BadStatusLine():
            return f"it does not speak HTTP on this port (it says `{clip(str(error), _LONGEST)}`)"
        case IncompleteRead():
            return "it closed the connection within an answer"
        case OSError():
            return error.strerror or clip(str(error), _LONGEST) or type(error).__name__
        case _:
            return clip(str(error), _LONGEST) or type(error).__name__


def _tls_words(error: ssl.SSLError) -> str:
    if error.reason in _NO_TLS:
        return "it does not speak TLS on this port"
    if error.reason in _NO_COMMON_TLS:
        return "it speaks no version of TLS that is safe to use"
    if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
        return "it closed the connection while TLS was set up"
    return f"TLS failed ({(error.reason or 'no reason given').lower().replace('_', ' ')})"


def _hint(error: BaseException) -> str:
    if isinstance(error, socket.gaierror):
        return "check the spelling of `vcenter.server`"
    if isinstance(error, ssl.SSLError | BadStatusLine) and not isinstance(error, RemoteDisconnected):
        return "check host and port in `vcenter.server`"
    return "check that the vCenter runs and that this machine can reach it"
