"""A signed-in connection to one vCenter, kept alive by signing in again when vCenter forgets it."""

from __future__ import annotations

import re
import socket
import ssl
import threading
import time
from http.client import HTTPException
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit
from xml.parsers.expat import ExpatError

from pyVmomi import vim
from pyVmomi.SoapAdapter import SoapStubAdapter
from pyVmomi.VmomiSupport import GetServiceVersions, versionIdMap

from vsphere_ml.core.errors import ConfigError, NotPossible, VSphereError
from vsphere_ml.vsphere.tls import Connection, PinMismatchError, Trust, untrusted
from vsphere_ml.vsphere.trace import Trace, TracedConnection

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

T = TypeVar("T")

# What a connection that breaks looks like; ExpatError is an answer that was cut off or is no SOAP at all.
BROKEN = (OSError, HTTPException, ExpatError)
_IDLE_S = 20  # proxies before vCenter drop idle connections; a write over a dropped one cannot be repeated
_POOL = 10
_HTTP_OK, _HTTP_NOT_FOUND = 200, 404
_VERSION = re.compile(r"<name>urn:vim25</name>(.*?)</namespace>", re.DOTALL)
_NUMBER = re.compile(r"<version>([^<]+)</version>")


def connect(
    server: str,
    username: str,
    password: str,
    *,
    ca_file: Path | None = None,
    thumbprint: str | None = None,
    insecure: bool = False,
    timeout_s: float = 60.0,
    trace: Path | None = None,
) -> Session:
    """Return a signed-in session.

    Raises VSphereError `vcenter.unreachable`, `vcenter.timeout`, `vcenter.untrusted` or `vcenter.sign-in`.
    """
    host, port = address(server)
    trust = Trust(ca_file=ca_file, thumbprint=thumbprint, insecure=insecure)
    log = Trace(trace) if trace else None
    wire = Wire(host, port, trust, timeout_s, log)
    try:
        return Session(wire, username, password)
    except BaseException:
        wire.close()
        raise


def address(server: str) -> tuple[str, int]:
    """Return host and port of `host`, `host:port` or `https://host/sdk`; ConfigError when it is none of them."""
    try:
        url = urlsplit(server if "://" in server else f"https://{server}")
        host, port = url.hostname or "", 443 if url.port is None else url.port
        host.encode("idna")  # what getaddrinfo does, and stumbles over
    except ValueError:
        host, port = "", 0
    if not host or not port or url.scheme != "https" or url.username:
        raise ConfigError(
            "this is not a vCenter's address",
            code="vcenter.address",
            target=server.rpartition("@")[2],
            hint="write vcenter.example.com, vcenter.example.com:8443 or https://vcenter.example.com/sdk",
        )
    return host, port


class Wire:
    """How to reach a vCenter: where, with which trust, how long to wait, and what is written down."""

    def __init__(self, host: str, port: int, trust: Trust, timeout_s: float, trace: Trace | None) -> None:
        self.host, self.port, self.trust, self.timeout_s, self.trace = host, port, trust, timeout_s, trace
        self._settings: dict[str, Any] = {"context": trust.context(), "pin": trust.pin, "timeout": timeout_s}
        self._scheme: type[Connection] = Connection
        if trace is not None:
            self._settings["trace"] = trace
            self._scheme = TracedConnection

    @property
    def name(self) -> str:
        return f"{self.host}:{self.port}"

    def stub(self) -> Any:
        """Return pyvmomi's end of the wire, in the newest API version both sides speak."""
        stub: Any = SoapStubAdapter(
            host=self.host,
            port=self.port,
            version=self._version(),
            poolSize=_POOL,
            connectionPoolTimeout=_IDLE_S,
            acceptCompressedResponses=self.trace is None,
        )
        stub.scheme, stub.schemeArgs = self._scheme, self._settings
        return stub

    def connection(self) -> Connection:
        return Connection(
            self.host, self.port, context=self._settings["context"], pin=self._settings["pin"], timeout=self.timeout_s
        )

    def _version(self) -> str:
        # pyVim's own probe has no timeout (9.1), so a silent server would hang it for ever.
        try:
            text = self._get("/sdk/vimServiceVersions.xml")
        except BROKEN as error:
            raise self.error(error) from error
        served = set(_NUMBER.findall("".join(_VERSION.findall(text))))
        for version in GetServiceVersions("vim25"):
            if versionIdMap[version] in served:
                return str(version)
        raise VSphereError(
            f"{self.name} answers, but not as a vCenter does",
            code="vcenter.unreachable",
            target=self.name,
            hint="check host and port in `vcenter.server`",
        )

    def _get(self, path: str) -> str:
        connection = self._scheme(self.host, self.port, **self._settings)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            body = response.read().decode("utf-8", "replace")
        finally:
            connection.close()
        return body if response.status == _HTTP_OK else ""

    def error(self, error: BaseException) -> VSphereError:
        """Return what a broken connection means to a person."""
        if isinstance(error, (PinMismatchError, ssl.SSLCertVerificationError)):
            return untrusted(self.host, self.port, self.trust, error, self.timeout_s)
        if isinstance(error, TimeoutError):
            return VSphereError(
                f"{self.name} did not answer within {self.timeout_s:g} s",
                code="vcenter.timeout",
                target=self.name,
                hint="check the address, the network and firewalls between; `--timeout` gives it longer",
            )
        if isinstance(error, socket.gaierror):
            why, hint = "the name cannot be resolved", "check the spelling of `vcenter.server`"
        else:
            why = getattr(error, "strerror", None) or str(error) or type(error).__name__
            hint = "check that the vCenter runs and that this machine can reach it"
        return VSphereError(
            f"{self.name} cannot be reached: {why}", code="vcenter.unreachable", target=self.name, hint=hint
        )

    def close(self) -> None:
        if self.trace is not None:
            self.trace.close()


class Session:
    """A signed-in vCenter. `read` and `write` run calls over it and mend it when they find it broken."""

    def __init__(self, wire: Wire, username: str, password: str) -> None:
        self._wire = wire
        self._username = username
        self._password = password
        self._lock = threading.Lock()
        self._generation = 0
        if wire.trace is not None:
            wire.trace.secret(password)
        self.stub = wire.stub()
        # pyvmomi's own stubs make every optional argument required and every property optional (9.1).
        self.root: Any
        self.content: Any
        try:
            self._reach()
        except BaseException:
            self.stub.DropConnections()
            raise

    @property
    def name(self) -> str:
        return self._wire.name

    @property
    def timeout_s(self) -> float:
        return self._wire.timeout_s

    @property
    def cookie(self) -> str:
        """What proves the session in a request that is no API call."""
        return str(self.stub.cookie or "").partition(";")[0]

    def connection(self) -> Connection:
        """Return a new connection for such a request, trusted as the API's are; its body goes into no trace."""
        return self._wire.connection()

    @property
    def generation(self) -> int:
        """Counts sign-ins; what a vCenter keeps for a session (views, collectors) is gone when it changes."""
        return self._generation

    def read(self, call: Callable[[], T]) -> T:
        """Return `call()`, tried once more on a new session when the session or the connection was lost."""
        return self._mended(call, (vim.fault.NotAuthenticated, *BROKEN))

    def write(self, call: Callable[[], T]) -> T:
        """Return `call()`, tried once more only when vCenter refused it unseen for want of a session.

        When the connection breaks nobody knows whether the write happened: VSphereError `vcenter.interrupted`.
        """
        try:
            return self._mended(call, (vim.fault.NotAuthenticated,))
        except BROKEN as error:
            raise VSphereError(
                f"the connection to {self.name} broke during a change; whether it happened is not known",
                code="vcenter.interrupted",
                target=self.name,
                hint="run the same command again: it looks first and finishes what is missing",
            ) from error

    def _mended(self, call: Callable[[], T], curable: tuple[type[BaseException], ...]) -> T:
        seen = self._generation
        try:
            return call()
        except curable:
            self._sign_in_again(seen)
        try:
            return call()
        except BROKEN as error:
            raise self._wire.error(error) from error

    def _sign_in_again(self, seen: int) -> None:
        with self._lock:
            if self._generation == seen:  # another thread may have done it
                self.stub.DropConnections()
                self._reach(patience_s=self.timeout_s)

    def _reach(self, patience_s: float = 0.0) -> None:
        """Sign in; for so many seconds a vCenter that does not answer may be one that restarts."""
        for left in _pauses(patience_s):
            try:
                self._sign_in()
                break
            except BROKEN as error:
                if left is None or isinstance(error, ssl.SSLCertVerificationError | PinMismatchError):
                    raise self._wire.error(error) from error
                self.stub.DropConnections()
                time.sleep(left)
        self._generation += 1

    def _sign_in(self) -> None:
        self.root = vim.ServiceInstance("ServiceInstance", self.stub)
        self.content = self.root.RetrieveContent()
        if self.content.about.apiType != "VirtualCenter":
            raise NotPossible(
                f"{self.name} is {self.content.about.fullName}, not a vCenter",
                code="vcenter.not-a-vcenter",
                target=self.name,
                hint="set `vcenter.server` to the vCenter that manages this host",
            )
        try:
            self._keep_secret(self.content.sessionManager.Login(self._username, self._password))
        except (vim.fault.InvalidLogin, vim.fault.NoPermission) as error:
            raise VSphereError(
                f"{self.name} refuses the sign-in of `{self._username}`",
                code="vcenter.sign-in",
                target=self.name,
                hint="check `vcenter.username` (user@domain) and the password; `vsml doctor` says where it was found",
            ) from error

    def _keep_secret(self, signed_in: Any) -> None:
        # vCenter puts the session's key into the ids of views and collectors.
        if self._wire.trace is not None:
            for value in (signed_in.key, self.stub.GetSessionId()):
                self._wire.trace.secret(str(value or "").strip('"'))

    def speaks(self, version: str) -> bool:
        """Return whether the API is at least this version, such as `8.0.0.1`."""
        return _digits(self.api_version) >= _digits(version)

    @property
    def api_version(self) -> str:
        return str(self.content.about.apiVersion)

    @property
    def is_lab(self) -> bool:
        """Whether vsml's own lab answers, which says so in its name."""
        return "(vsml lab, simulated)" in str(self.content.about.fullName)

    @property
    def about(self) -> str:
        about = self.content.about
        return f"{about.fullName or about.name} (API {about.apiVersion})" if not about.build else str(about.fullName)

    def close(self) -> None:
        """Sign out. Never raises: the work is done by then."""
        try:
            self.content.sessionManager.Logout()
        except (vim.fault.NotAuthenticated, vim.fault.VimFault, *BROKEN):
            pass  # the session ends by itself
        finally:
            self.stub.DropConnections()
            self._wire.close()


def _pauses(total_s: float) -> Iterator[float | None]:
    """Yield how long to wait after each try, longer and longer; None when the time is up."""
    end, pause = time.monotonic() + total_s, 0.1
    while time.monotonic() + pause < end:
        yield pause
        pause = min(2 * pause, 5.0)
    yield None


def _digits(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))
