"""What the environment says of a vCenter: our variables, then govc's, then Terraform's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, unquote, urlsplit

from vsphere_ml.config.secrets import thumbprints
from vsphere_ml.core.errors import ConfigError
from vsphere_ml.core.secret import Secret
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_TRUE = frozenset({"1", "t", "true", "y", "yes", "on"})
_FALSE = frozenset({"0", "f", "false", "n", "no", "off"})


@dataclass(frozen=True, slots=True)
class _EnvironmentValue:
    """A text of the environment, and the variable it is from."""

    value: str
    variable: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VariableNames:
    """One tool's variables. What belongs together is used together or not at all."""

    server: _EnvironmentValue | None
    username: _EnvironmentValue | None
    password: tuple[Secret, str] | None
    ca_file: tuple[Path, str] | None = None
    thumbprint: _EnvironmentValue | None = None
    insecure: tuple[bool, str] | None = None

    def other_login(self, server: str | None, username: str | None) -> str | None:
        """Return the variable that says these are another vCenter's or account's; None when they are this one's."""
        for mine, theirs in ((self.server, server), (self.username, username)):
            if mine is not None and theirs is not None and mine.value.casefold() != theirs.casefold():
                return mine.variable
        return None


def families(environ: Mapping[str, str]) -> tuple[VariableNames, ...]:
    """Return what each family of variables says, in the order they are asked; ConfigError `env.invalid`."""
    return (_ours(_Variables(environ)), _govc(_Variables(environ)), _terraform(_Variables(environ)))


def plain_server(server: str) -> str:
    """Return `host` or `host:port` of a server that may be written as a URL; ValueError when it is none."""
    url = _split(server)
    if url.username is not None or not url.hostname:
        raise ValueError("not a server")
    return _address(url)


class _Variables:
    """The environment, an empty variable being none."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ

    def get(self, name: str) -> _EnvironmentValue | None:
        value = self._environ.get(name, "").strip("\r\n")
        return _EnvironmentValue(value, name) if value else None

    def secret(self, name: str) -> tuple[Secret, str] | None:
        said = self.get(name)
        return (Secret(said.value), name) if said else None

    def path(self, name: str) -> tuple[Path, str] | None:
        said = self.get(name)
        return (_path(said.value), name) if said else None

    def flag(self, name: str) -> tuple[bool, str] | None:
        said = self.get(name)
        if said is None:
            return None
        if said.value.casefold() not in _TRUE | _FALSE:
            raise _invalid_variable(name, "expected true or false")
        return said.value.casefold() in _TRUE, name

    def read(self, name: str, reading: Callable[[str], str], expected: str) -> _EnvironmentValue | None:
        said = self.get(name)
        if said is None:
            return None
        try:
            return _EnvironmentValue(reading(said.value), name)
        except ValueError:
            raise _invalid_variable(name, expected) from None  # the cause could repeat a secret


_SERVER = "expected a server such as vcenter.example.com"


def _ours(env: _Variables) -> VariableNames:
    return VariableNames(
        server=env.read("VSML_VCENTER_SERVER", plain_server, _SERVER),
        username=env.get("VSML_VCENTER_USERNAME"),
        password=env.secret("VSML_VCENTER_PASSWORD"),
        ca_file=env.path("VSML_VCENTER_CA_FILE"),
        thumbprint=env.read("VSML_VCENTER_THUMBPRINT", thumbprints.tidy, "expected a SHA-256 thumbprint"),
        insecure=env.flag("VSML_VCENTER_INSECURE"),
    )


def _govc(env: _Variables) -> VariableNames:
    user, password = _user_of(env.get("GOVC_URL"))
    return VariableNames(
        server=env.read("GOVC_URL", lambda url: _address(_split(url)), f"{_SERVER} or https://vcenter.example.com/sdk"),
        username=env.get("GOVC_USERNAME") or user,
        password=env.secret("GOVC_PASSWORD") or password,
        ca_file=_one_file(env, "GOVC_TLS_CA_CERTS"),
        insecure=env.flag("GOVC_INSECURE"),
    )


def _terraform(env: _Variables) -> VariableNames:
    return VariableNames(
        server=env.read("VSPHERE_SERVER", plain_server, _SERVER),
        username=env.get("VSPHERE_USER"),
        password=env.secret("VSPHERE_PASSWORD"),
        insecure=env.flag("VSPHERE_ALLOW_UNVERIFIED_SSL"),
    )


def _user_of(url: _EnvironmentValue | None) -> tuple[_EnvironmentValue | None, tuple[Secret, str] | None]:
    """Return user and password of `user:password@host`."""
    if url is None:
        return None, None
    try:
        parts = _split(url.value)
    except ValueError:
        return None, None  # reported where the server is read
    user = _EnvironmentValue(unquote(parts.username), url.variable) if parts.username else None
    password = (Secret(unquote(parts.password)), url.variable) if parts.password else None
    return user, password


def _one_file(env: _Variables, name: str) -> tuple[Path, str] | None:
    said = env.get(name)
    if said is not None and ":" in said.value:
        raise _invalid_variable(name, "names several files", "join them into one PEM file")
    return env.path(name)


def _split(text: str) -> SplitResult:
    url = urlsplit(text if "://" in text else f"https://{text}")
    if url.scheme != "https" or not url.hostname or url.path.rstrip("/") not in {"", "/sdk"} or url.query:
        raise ValueError("not the URL of a vCenter")
    return url


def _address(url: SplitResult) -> str:
    """Return `host` or `host:port`; ValueError for a port that is none."""
    host = f"[{url.hostname}]" if url.hostname and ":" in url.hostname else f"{url.hostname}"
    return host if url.port in {None, 443} else f"{host}:{url.port}"


def _path(text: str) -> Path:
    try:
        return Path(text).expanduser()
    except RuntimeError:  # `~nobody`
        return Path(text)


def _invalid_variable(variable: str, why: str, hint: str = "") -> ConfigError:
    return ConfigError(
        f"{variable} cannot be used: {why}",
        code="env.invalid",
        target=variable,
        hint=hint or f"correct it, or type: unset {variable}",
    )


def unused_variables(known: tuple[VariableNames, ...], server: str | None, username: str | None) -> Iterator[str]:
    """Yield why passwords of the environment were left alone, so that nobody wonders."""
    for family in known:
        variable = family.other_login(server, username)
        if family.password is not None and variable is not None:
            yield f"{family.password[1]} is not used, because {variable} names another vCenter or account"
