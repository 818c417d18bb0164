"""What `vsml doctor` found out, check by check."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from vsphere_ml.cli.views.layout.text import line, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vsphere_ml.cli.views.layout.columns import Columns
    from vsphere_ml.config.secrets.sign_in import Endpoint, SignIn
    from vsphere_ml.core.errors import VsmlError

STYLES = {"ok": "green", "warning": "yellow", "failed": "bold red"}


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorCheck:
    """One thing that was looked at: ok, warning or failed, and what was seen."""

    name: str
    state: str
    detail: str


def text(checks: Sequence[DoctorCheck]) -> Columns:
    """Return one line a check."""
    rows = ((line((each.state, STYLES[each.state])), each.name, each.detail) for each in checks)
    return table(("STATE", "CHECK", "WHAT WAS SEEN"), rows)


def data(checks: Sequence[DoctorCheck]) -> dict[str, Any]:
    """Return the checks' fields."""
    return {"checks": [asdict(each) for each in checks]}


def sources(found: Endpoint, password: DoctorCheck) -> list[DoctorCheck]:
    """Return where each part of a connection was found, the password among them."""
    server, username = _part(found, "server", found.server), _part(found, "username", found.username)
    return [server, username, password, _trust(found)]


def password(found: SignIn) -> DoctorCheck:
    """Return where a password was found, and nothing else of it."""
    return _part(found, "password", "***")


def failed_check(name: str, error: VsmlError) -> DoctorCheck:
    """Return what could not be done, and why."""
    return DoctorCheck(name=name, state="failed", detail=error.message)


def _part(found: Endpoint, name: str, value: str, state: str = "ok") -> DoctorCheck:
    return DoctorCheck(name=name, state=state, detail=f"{value} (from {found.where[name]})")


def sign_in_checks(found: Endpoint, about: str, api_version: str) -> list[DoctorCheck]:
    """Return what a vCenter said of itself after the sign-in."""
    trusted = DoctorCheck(name="certificate", state="ok", detail="as the trust above wants it")
    unknown = DoctorCheck(name="certificate", state="warning", detail="not verified")
    return [
        unknown if found.insecure else trusted,
        DoctorCheck(name="sign-in", state="ok", detail=f"{about}, API {api_version}"),
    ]


def privileges(missing: Sequence[str] | None) -> DoctorCheck:
    """Return whether the account may do what the work takes; a warning at most: more may be granted further down."""
    if missing is None:
        return DoctorCheck(
            name="privileges", state="warning", detail="vCenter does not tell this account what it may do"
        )
    if missing:
        text = f"not granted on the data centre: {', '.join(missing)}"
        return DoctorCheck(name="privileges", state="warning", detail=text)
    return DoctorCheck(name="privileges", state="ok", detail="all that provision and destroy take")


def _trust(found: Endpoint) -> DoctorCheck:
    if found.insecure:
        text = "the certificate is not verified; anyone on the way can read along"
        return _part(found, "insecure", text, "warning")
    if found.thumbprint is not None:
        return _part(found, "thumbprint", found.thumbprint)
    return _part(found, "ca_file", str(found.ca_file) if found.ca_file else "the system's certificate authorities")
