"""A signed-in connection to one vCenter, kept alive by signing in again when vCenter forgets it."""

from __future__ import annotations

import ssl
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from pyVmomi import vim, vmodl

from vsphere_ml.core.errors import ConfigError, NotPossible, VSphereError
from vsphere_ml.vsphere.connection import rest
from vsphere_ml.vsphere.connection.endpoint import BROKEN, VCenterEndpoint, call_twice, digits
from vsphere_ml.vsphere.connection.required import require
from vsphere_ml.vsphere.connection.tls import PinMismatchError, Trust

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from vsphere_ml.vsphere.connection.soap import Stub
    from vsphere_ml.vsphere.connection.tls import PinnedConnection
    from vsphere_ml.vsphere.connection.trace import MessageLog

T = TypeVar("T")
# Every vCenter has them, and the API allows a host to have none.
_MANAGERS = (
    "authorizationManager",
    "customFieldsManager",
    "customizationSpecManager",
    "sessionManager",
    "taskManager",
    "viewManager",
)


class InterruptedWriteError(VSphereError):
    """The connection broke during a change: it was made, or was not."""


def connect(
    server: str,
    username: str,
    password: str,
    trust: Trust,
    *,
    timeout_s: float = 60.0,
    log: MessageLog | None = None,
) -> Session:
    """Return a signed-in session; its messages go into `log`.

    Raises VSphereError `vcenter.unreachable`, `vcenter.timeout`, `vcenter.untrusted` or `vcenter.sign-in`.
    """
    host, port = address(server)
    endpoint = VCenterEndpoint(host, port, trust, timeout_s, log)
    try:
        return Session(endpoint, username, password)
    except BaseException:
        endpoint.close()
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


class Session:
    """A signed-in vCenter. `read` and `write` run calls over it and repair it when they find it broken."""

    def __init__(self, endpoint: VCenterEndpoint, username: str, password: str) -> None:
        self._endpoint = endpoint
        self._username = username
        self._password = password
        self._lock = threading.Lock()
        self._generation = 0
        self._left: list[str] = []  # cookies of sessions that were left alive
        if endpoint.trace is not None:
            endpoint.trace.secret(password)
        self.stub = endpoint.stub()
        # pyvmomi's own stubs make every optional argument required and every property optional (9.1).
        self.root: Any
        self.content: Any
        try:
            self._reach(timeout_s=0.0)
        except BaseException:
            self.stub.DropConnections()
            raise

    @property
    def name(self) -> str:
        return self._endpoint.name

    @property
    def timeout_s(self) -> float:
        return self._endpoint.timeout_s

    @property
    def cookie(self) -> str:
        """What proves the session in a request that is no API call."""
        return str(self.stub.cookie or "").partition(";")[0]

    def file_connection(self) -> PinnedConnection:
        """Return a new connection for such a request, trusted as the API's are; its body goes into no trace."""
        return self._endpoint.file_connection()

    def policy_stub(self) -> Stub:
        """Return a stub of the storage policy service in this session; whoever takes it drops its connections."""
        return self._endpoint.policy_stub(self.cookie.partition("=")[2].strip('"'))

    @contextmanager
    def rest(self, timeout_s: float | None = None) -> Iterator[rest.RestSession]:
        """Sign in to the REST API, for several questions; raises as `read_rest`."""
        with rest.sign_in(self._endpoint.file_connection(timeout_s), self._username, self._password) as signed_in:
            yield signed_in

    def upload_connection(self, host: str, port: int, thumbprint: str | None) -> PinnedConnection:
        """Return a connection for a disk to an address of a lease, in which `*` is the server itself."""
        here = host == "*" or (host, port) == (self._endpoint.host, self._endpoint.port)
        return self._endpoint.file_connection() if here else self._endpoint.host_connection(host, port, thumbprint)

    def read_rest(self, path: str) -> Any:
        """Return what the REST API answers to a GET; OSError, HTTPException or ValueError where it answers none."""
        with self.rest() as signed_in:
            return signed_in.get(path)

    @property
    def generation(self) -> int:
        """Counts sign-ins; what a vCenter keeps for a session (views, collectors) is gone when it changes."""
        return self._generation

    def read(self, call: Callable[[], T]) -> T:
        """Return `call()`, tried once more on a new session when the session or the connection was lost.

        Also for a change that may be made twice, such as the removal of an object by its id.
        """
        seen = self._generation
        try:
            return call()
        except (vim.fault.NotAuthenticated, *BROKEN) as error:
            self._sign_in_again(seen, lost=isinstance(error, vim.fault.NotAuthenticated))
        except vmodl.MethodFault:
            if self._generation == seen:
                raise  # else another thread has left the session, and with it the views that this call had in it
        try:
            return call()
        except BROKEN as error:
            raise self._endpoint.error(error) from error

    def write(self, call: Callable[[], T]) -> T:
        """Return `call()`, tried once more only when vCenter refused it unseen for want of a session.

        When the connection breaks nobody knows whether the write happened: InterruptedWriteError `vcenter.interrupted`.
        """
        seen = self._generation
        try:
            try:
                return call()
            except vim.fault.NotAuthenticated:
                self._sign_in_again(seen, lost=True)
            return call()
        except BROKEN as error:
            raise InterruptedWriteError(
                f"the connection to {self.name} broke during a change; whether it happened is not known",
                code="vcenter.interrupted",
                target=self.name,
                hint="run the same command again: it looks first and finishes what is missing",
            ) from error

    def _sign_in_again(self, seen: int, *, lost: bool) -> None:
        """Make a new session, unless another thread has done so; one that is not `lost` is signed out at the end."""
        with self._lock:
            if self._generation == seen:
                if not lost and self.cookie:
                    self._left.append(self.stub.cookie)
                self.stub.DropConnections()
                self._reach(timeout_s=self.timeout_s)

    def _reach(self, timeout_s: float) -> None:
        """Sign in; for so many seconds a vCenter that does not answer may be one that restarts."""
        for pause_s in retry_pauses(timeout_s):
            try:
                call_twice(self._sign_in)
                break
            except BROKEN as error:
                if pause_s is None or isinstance(error, ssl.SSLCertVerificationError | PinMismatchError):
                    raise self._endpoint.error(error) from error
                self.stub.DropConnections()
                time.sleep(pause_s)
        self._generation += 1

    def _sign_in(self) -> None:
        self.stub.leave_session()  # within a session that lives, vCenter refuses another sign-in
        self.root = vim.ServiceInstance("ServiceInstance", self.stub)
        self.content = self.root.RetrieveContent()
        if self.content.about.apiType != "VirtualCenter":
            raise NotPossible(
                f"{self.name} is {self.content.about.fullName}, not a vCenter",
                code="vcenter.not-a-vcenter",
                target=self.name,
                hint="set `vcenter.server` to the vCenter that manages this host",
            )
        for manager in _MANAGERS:
            require(self.content, manager)
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
        if self._endpoint.trace is not None:
            for value in (signed_in.key, self.stub.GetSessionId()):
                self._endpoint.trace.secret(str(value or "").strip('"'))

    def speaks(self, version: str) -> bool:
        """Return whether the API is at least this version, such as `8.0.0.1`."""
        return digits(self.api_version) >= digits(version)

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
        """Sign out of every session that was made. Never raises: the work is done by then."""
        try:
            for cookie in (self.stub.cookie, *self._left):
                self._sign_out(cookie)
        except BROKEN:
            pass  # the sessions end by themselves
        finally:
            self.stub.DropConnections()
            self._endpoint.close()

    def _sign_out(self, cookie: str) -> None:
        self.stub.cookie = cookie
        with suppress(vmodl.MethodFault):
            self.content.sessionManager.Logout()


def retry_pauses(total_s: float) -> Iterator[float | None]:
    """Yield how long to wait after each try, longer and longer; None when the time is up."""
    end, pause = time.monotonic() + total_s, 0.1
    while time.monotonic() + pause < end:
        yield pause
        pause = min(2 * pause, 5.0)
    yield None
