"""How to sign in to a vCenter: from the file, or from the environment; says where each part was found."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from vsphere_ml.config.secrets.environment import VariableNames, families, plain_server
from vsphere_ml.config.secrets.passwords import Account, keyring_lookup, password
from vsphere_ml.core.errors import ConfigError
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from vsphere_ml.config.secrets.passwords import Keyring, Prompt
    from vsphere_ml.core.model.spec import VCenterSpec
    from vsphere_ml.core.secret import Secret

__all__ = ["Endpoint", "SignIn", "connection", "endpoint", "password"]


NO_OPTIONS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where to sign in, as whom, and what makes the certificate good; `where` says where each part was found.

    Trust is found under the name of what was chosen: `ca_file`, `thumbprint` or `insecure`.
    """

    server: str
    username: str
    ca_file: Path | None
    thumbprint: str | None
    insecure: bool
    where: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class SignIn(Endpoint):
    """What signing in takes, and where each part of it was found."""

    password: Secret


def endpoint(spec: VCenterSpec, environ: Mapping[str, str], options: Mapping[str, str] = NO_OPTIONS) -> Endpoint:
    """Return where to sign in. What the spec says wins over the environment.

    A family of variables that names another server or account is left alone as a whole. `options` has the command
    line's option for each part of the spec that came from one, such as `--server` for `server`.
    Raises ConfigError `vcenter.no-server`, `vcenter.no-username`, `vcenter.address` or `env.invalid`.
    """
    known = families(environ)
    server, server_where = _server(spec, known)
    username, username_where = _username(spec, known, server)
    trust, kind, trust_where = _trust(spec, known, server)
    found = {"server": server_where, "username": username_where, kind: trust_where}
    return Endpoint(
        server=server,
        username=username,
        ca_file=trust.ca_file,
        thumbprint=trust.thumbprint,
        insecure=trust.insecure,
        where={part: options.get(part, place) for part, place in found.items()},
    )


def connection(
    spec: VCenterSpec,
    environ: Mapping[str, str],
    prompt: Prompt | None = None,
    keyring: Keyring = keyring_lookup,
    to: Endpoint | None = None,
) -> SignIn:
    """Return how to sign in `to` the endpoint, which is that of the spec when none is given.

    No password is sent to a vCenter it was not meant for. `prompt` is None where nobody can be asked.
    Raises ConfigError as `endpoint` or as `password`.
    """
    to = to or endpoint(spec, environ)
    found = password(spec.password, Account(to.server, to.username), environ, prompt, keyring)
    return SignIn(
        server=to.server,
        username=to.username,
        password=found.secret,
        ca_file=to.ca_file,
        thumbprint=to.thumbprint,
        insecure=to.insecure,
        where={**to.where, "password": found.where},
    )


def _server(spec: VCenterSpec, known: tuple[VariableNames, ...]) -> tuple[str, str]:
    if spec.server is not None:
        try:
            return plain_server(spec.server), "vcenter.server"
        except ValueError:
            raise ConfigError(
                "this is not a vCenter's address",
                code="vcenter.address",
                target=spec.server.rpartition("@")[2],
                hint="write vcenter.example.com, vcenter.example.com:8443 or https://vcenter.example.com/sdk",
            ) from None
    said = next((family.server for family in known if family.server), None)
    if said is None:
        raise ConfigError(
            "no vCenter is named",
            code="vcenter.no-server",
            target="vcenter.server",
            hint='set vcenter.server = "vcenter.example.com", or type: export VSML_VCENTER_SERVER=vcenter.example.com',
        )
    return said.value, said.variable


def _username(spec: VCenterSpec, known: tuple[VariableNames, ...], server: str) -> tuple[str, str]:
    if spec.username is not None:
        return spec.username, "vcenter.username"
    ours = (family for family in known if not family.other_login(server, None))
    said = next((family.username for family in ours if family.username), None)
    if said is None:
        raise ConfigError(
            f"no user to sign in to {server} with",
            code="vcenter.no-username",
            target="vcenter.username",
            hint="set vcenter.username, or type: export VSML_VCENTER_USERNAME=user@vsphere.local",
        )
    return said.value, said.variable


@dataclass(frozen=True, slots=True)
class _Trust:
    ca_file: Path | None = None
    thumbprint: str | None = None
    insecure: bool = False


def _trust(spec: VCenterSpec, known: tuple[VariableNames, ...], server: str) -> tuple[_Trust, str, str]:
    """Return what makes the certificate good, which kind of trust that is, and who says so.

    It is as the spec says, else as one family says, else by the system's CAs.
    """
    if spec.insecure or spec.ca_file or spec.thumbprint:
        chosen = "insecure" if spec.insecure else "thumbprint" if spec.thumbprint else "ca_file"
        return _Trust(spec.ca_file, spec.thumbprint, spec.insecure), chosen, f"vcenter.{chosen}"
    for family in known:
        if family.other_login(server, None):
            continue
        # Whoever says how to verify and not to verify, is believed in the first.
        if family.thumbprint is not None:
            return _Trust(thumbprint=family.thumbprint.value), "thumbprint", family.thumbprint.variable
        if family.ca_file is not None:
            return _Trust(ca_file=family.ca_file[0]), "ca_file", family.ca_file[1]
        if family.insecure is not None and family.insecure[0]:
            return _Trust(insecure=True), "insecure", family.insecure[1]
    return _Trust(), "ca_file", "the default"
