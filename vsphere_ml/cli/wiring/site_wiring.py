"""Builds the real vCenter from a spec and the options. The one place that knows every edge."""

from __future__ import annotations

import getpass
import os
import sys
import time
from contextlib import contextmanager
from dataclasses import field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from vsphere_ml.cli.options import DEFAULT_FILE
from vsphere_ml.core.bounded_file import read_bytes
from vsphere_ml.core.errors import ConfigError
from vsphere_ml.core.model.spec import VCenterSpec
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from vsphere_ml.cli.options import GlobalOptions, SiteOptions
    from vsphere_ml.cli.terminal import Terminal
    from vsphere_ml.config.secrets.sign_in import Endpoint, SignIn
    from vsphere_ml.core.model.inventory import Inventory
    from vsphere_ml.core.model.spec import ClusterSpec
    from vsphere_ml.core.ports.esxi import Hosts
    from vsphere_ml.core.ports.vcenter import VCenter
    from vsphere_ml.flows.run_context import RunContext
    from vsphere_ml.vsphere.connection.session import Session
    from vsphere_ml.vsphere.connection.trace import MessageLog

_TRUST_OPTIONS = MappingProxyType({"ca_file": "--tls-ca", "thumbprint": "--thumbprint", "insecure": "--insecure"})
LARGEST_TEXT = 64 << 20  # bytes; a saved plan of 8,000 nodes is far below


class SystemClock:
    """Time as the system counts it since it started."""

    def now(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInTarget:
    """Which vCenter to look at, and which data centre of it; `options` gave parts of it, such as `--server`."""

    vcenter: VCenterSpec
    datacenter: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)


@contextmanager
def vcenter(spec: VCenterSpec, terminal: Terminal) -> Iterator[VCenter]:
    """Yield the signed-in vCenter of a spec, and sign out afterwards."""
    from vsphere_ml.vsphere.gateway import Gateway

    session = _sign_in(connection(spec, terminal), terminal.settings)
    _say_if_lab(session, terminal)
    gateway = Gateway(session, cache() / "datastores")
    try:
        yield gateway
    finally:
        gateway.close()


@contextmanager
def run_context(spec: ClusterSpec, terminal: Terminal) -> Iterator[RunContext]:
    """Yield what a run over a cluster's vCenter works with; what is looked at is shown."""
    from vsphere_ml.cli.views.progress.apply_progress import show_apply_progress
    from vsphere_ml.flows.run_context import RunContext

    with vcenter(spec.vcenter, terminal) as connected, show_apply_progress(terminal.err) as notify:
        yield RunContext(spec, connected, notify, SystemClock())


@contextmanager
def vcenter_and_hosts(spec: VCenterSpec, terminal: Terminal) -> Iterator[tuple[VCenter, Hosts, str]]:
    """Yield the signed-in vCenter of a spec, its ESXi hosts, and its `host:port`; sign out afterwards."""
    from vsphere_ml.vsphere.esxi.esx_hosts import EsxHosts
    from vsphere_ml.vsphere.gateway import Gateway

    session = _sign_in(connection(spec, terminal), terminal.settings)
    _say_if_lab(session, terminal)
    gateway = Gateway(session, cache() / "datastores")
    try:
        yield gateway, EsxHosts(session), session.name
    finally:
        gateway.close()


def cache() -> Path:
    """Return where vsml keeps what can be had again; VSML_CACHE_DIR overrides it."""
    import platformdirs

    return Path(os.environ.get("VSML_CACHE_DIR") or platformdirs.user_cache_dir("vsml")).absolute()


def _say_if_lab(session: Session, terminal: Terminal) -> None:
    """Say on sight that nothing of what follows is true of hardware; the same stands among the messages of -o json."""
    if session.is_lab:
        terminal.say("lab: hosts, GPUs, NICs and drivers are simulated")


@contextmanager
def session(to: SignIn, settings: GlobalOptions, recorder: MessageLog | None = None) -> Iterator[Session]:
    """Yield a session only, for who wants to know whether there is one, or what it answers."""
    signed_in = _sign_in(to, settings, recorder)
    try:
        yield signed_in
    finally:
        signed_in.close()


def connection(spec: VCenterSpec, terminal: Terminal) -> SignIn:
    """Return how to sign in; options win over the file, the file over the environment."""
    to = SignInTarget(vcenter=spec)
    return with_password(endpoint(to, terminal), to, terminal)


def endpoint(to: SignInTarget, terminal: Terminal) -> Endpoint:
    """Return where to sign in, and where each part of that was found."""
    from vsphere_ml.config.secrets import sign_in

    if to.vcenter.lab is not None:
        _refuse_own_connection(to, terminal.settings)
        return _to_lab(to.vcenter.lab)
    spec, options = _with_options(to.vcenter, terminal.settings)
    found = sign_in.endpoint(spec, os.environ, {**to.options, **options})
    if found.insecure:
        terminal.say(
            f"warning: the certificate of {found.server} is not verified; anyone on the way can read the password"
        )
    return found


def with_password(found: Endpoint, to: SignInTarget, terminal: Terminal) -> SignIn:
    """Return how to sign in there; ConfigError when there is no password."""
    from vsphere_ml.config.secrets import sign_in

    if isinstance(found, sign_in.SignIn):  # a lab's
        return found
    return sign_in.connection(to.vcenter, os.environ, _prompt(terminal), to=found)


def target(
    file: Path | None,
    *,
    server: str | None = None,
    username: str | None = None,
    lab: str | None = None,
    datacenter: str | None = None,
) -> SignInTarget:
    """Return what options name, else what the file says, else what the environment says, else ./cluster.toml."""
    if lab is not None and (server is not None or file is not None):
        raise ConfigError(
            "--lab cannot be combined with these options",
            code="usage",
            hint="leave out --lab, or the file and --server",
        )
    given = {"server": server, "username": username}
    options = {part: f"--{part}" for part, value in given.items() if value is not None}
    if file is None and (
        lab is not None or server is not None or _environment_names_one() or not DEFAULT_FILE.exists()
    ):
        return SignInTarget(
            vcenter=VCenterSpec(server=server, username=username, lab=lab), datacenter=datacenter, options=options
        )
    from vsphere_ml.cli.wiring.cluster_file import load

    spec = load(file or DEFAULT_FILE)
    to = spec.vcenter
    if server is not None:
        to = replace(to, server=server, lab=None)
    if username is not None:
        to = replace(to, username=username)
    return SignInTarget(vcenter=to, datacenter=datacenter or spec.location.datacenter, options=options)


def named_vcenter(site: SiteOptions) -> SignInTarget | None:
    """Return the vCenter that options or the environment name; None where they name none."""
    if site.server is None and site.lab is None and not _environment_names_one():
        return None
    return target(None, **vars(site))


def read_named_site(file: Path | None, site: SiteOptions, terminal: Terminal) -> Inventory:
    """Return what is read of the site that `target` finds."""
    from vsphere_ml.core.ports.vcenter import Scope

    where = target(file, **vars(site))
    with vcenter(where.vcenter, terminal) as connected:
        return connected.read_site(Scope(datacenter=where.datacenter, direct_path=True))


def sign_in_keys(to: SignInTarget, terminal: Terminal) -> dict[str, str]:
    """Return what a cluster file's [vcenter] says to sign in there as well; the password is never part of it."""
    if to.vcenter.lab is not None:
        return {"lab": to.vcenter.lab}
    found = endpoint(to, terminal)
    trust = {"ca_file": found.ca_file and str(found.ca_file.absolute()), "thumbprint": found.thumbprint}
    return {"server": found.server, "username": found.username, **{key: each for key, each in trust.items() if each}}


def read(file: Path, limit: int = LARGEST_TEXT) -> str:
    """Return the content of a text file of at most `limit` bytes; ConfigError when it cannot be read."""
    try:
        return read_bytes(file, limit).decode()
    except (OSError, UnicodeError) as error:
        raise ConfigError(f"{file} cannot be read: {_why(error)}", code="file.unreadable", target=str(file)) from error


def write(file: Path, text: str) -> None:
    """Write a text file whole or not at all; ConfigError when it cannot be written."""
    part = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(file)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise ConfigError(
            f"{file} cannot be written: {_why(error)}", code="file.unwritable", target=str(file)
        ) from error


def _sign_in(to: SignIn, settings: GlobalOptions, recorder: MessageLog | None = None) -> Session:
    from vsphere_ml.vsphere.connection.session import connect
    from vsphere_ml.vsphere.connection.tls import Trust

    return connect(
        to.server,
        to.username,
        to.password.reveal(),
        Trust(ca_file=to.ca_file, thumbprint=to.thumbprint, insecure=to.insecure),
        timeout_s=settings.timeout,
        log=recorder or _trace(settings.trace),
    )


def _trace(file: Path | None) -> MessageLog | None:
    if file is None:
        return None
    from vsphere_ml.vsphere.connection.trace import Trace

    return Trace(file)


def _with_options(spec: VCenterSpec, settings: GlobalOptions) -> tuple[VCenterSpec, dict[str, str]]:
    """Return the spec with the options' trust in place of its own, and which option gave what."""
    given = _given_trust(settings)
    if not any(given.values()):
        return spec, {}
    other = next((_TRUST_OPTIONS[part] for part in ("ca_file", "thumbprint") if given[part]), None)
    if given["insecure"] and other:
        raise ConfigError(f"--insecure contradicts {other}", code="usage", hint=f"leave out --insecure, or {other}")
    return replace(spec, **given), dict(_TRUST_OPTIONS)  # type: ignore[arg-type]


def _given_trust(settings: GlobalOptions) -> dict[str, object]:
    return {"ca_file": settings.tls_ca, "thumbprint": settings.thumbprint, "insecure": settings.insecure}


def _refuse_own_connection(to: SignInTarget, settings: GlobalOptions) -> None:
    """Refuse options that a lab's own connection would leave without effect; ConfigError `usage`."""
    given = [_TRUST_OPTIONS[part] for part, value in _given_trust(settings).items() if value]
    given += [option for part, option in to.options.items() if part == "username"]
    if given:
        raise ConfigError(
            f"{given[0]} has no effect on the lab `{to.vcenter.lab}`, which brings its own user and CA",
            code="usage",
            target=given[0],
            hint=f"leave out {', '.join(given)}; or reach the lab as another vCenter: vsml lab env",
        )


def _to_lab(name: str) -> SignIn:
    from vsphere_ml.config.secrets.sign_in import SignIn
    from vsphere_ml.core.secret import Secret
    from vsphere_ml.lab import state

    lab = state.running_lab(name)
    where = f"the lab `{name}`"
    return SignIn(
        server=lab.address,
        username=lab.username,
        password=Secret(lab.password()),
        ca_file=lab.ca_file,
        thumbprint=None,
        insecure=False,
        where={"server": where, "username": where, "password": str(lab.password_file), "ca_file": where},
    )


def _prompt(terminal: Terminal) -> Callable[[str], str] | None:
    """Return what asks for a password; None where nobody can be asked."""
    if not terminal.interactive:
        return None
    return lambda question: getpass.getpass(question, stream=sys.stderr)


def _environment_names_one() -> bool:
    return any(os.environ.get(name) for name in ("VSML_VCENTER_SERVER", "GOVC_URL", "VSPHERE_SERVER"))


def _why(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        line = error.object.count(b"\n", 0, error.start) + 1
        return f"line {line} is not UTF-8 text"
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)
