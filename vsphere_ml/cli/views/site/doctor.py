"""What `vsml doctor` found out, check by check."""

from __future__ import annotations

from typing import TYPE_CHECKING, NotRequired, TypedDict

from vsphere_ml.cli.views.layout.text import line, table
from vsphere_ml.core.diagnostics import Diagnostic, Severity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vsphere_ml.cli.views.layout.columns import Columns
    from vsphere_ml.cli.views.site.record import RecordData
    from vsphere_ml.config.secrets.sign_in import Endpoint, SignIn
    from vsphere_ml.core.errors import VsmlError

STYLES = {Severity.OK: "green", Severity.WARNING: "yellow", Severity.ERROR: "bold red"}


class DoctorData(TypedDict):
    """The checks of the connection; with `--record` also what was written."""

    checks: Sequence[Diagnostic]
    record: NotRequired[RecordData]


def text(checks: Sequence[Diagnostic]) -> Columns:
    """Return one line a check."""
    rows = ((line((each.severity, STYLES[each.severity])), each.target, each.message) for each in checks)
    return table(("STATE", "CHECK", "WHAT WAS SEEN"), rows)


def data(checks: Sequence[Diagnostic]) -> DoctorData:
    """Return the checks' fields."""
    return {"checks": checks}


def sources(found: Endpoint, password: Diagnostic) -> list[Diagnostic]:
    """Return where each part of a connection was found, the password among them."""
    server, username = _part(found, "server", found.server), _part(found, "username", found.username)
    return [server, username, password, _trust(found)]


def password(found: SignIn) -> Diagnostic:
    """Return where a password was found, and nothing else of it."""
    return _part(found, "password", "***")


def failed_check(name: str, error: VsmlError) -> Diagnostic:
    """Return what could not be done, and why."""
    return Diagnostic(severity=Severity.ERROR, target=name, message=error.message)


def _part(found: Endpoint, name: str, value: str, severity: Severity = Severity.OK) -> Diagnostic:
    return Diagnostic(severity=severity, target=name, message=f"{value} (from {found.where[name]})")


def sign_in_checks(found: Endpoint, about: str, api_version: str) -> list[Diagnostic]:
    """Return what a vCenter said of itself after the sign-in."""
    trusted = Diagnostic(severity=Severity.OK, target="certificate", message="trusted by what is set above")
    unknown = Diagnostic(severity=Severity.WARNING, target="certificate", message="not verified")
    return [
        unknown if found.insecure else trusted,
        Diagnostic(severity=Severity.OK, target="sign-in", message=f"{about}, API {api_version}"),
    ]


def privileges(missing: Sequence[str] | None) -> Diagnostic:
    """Return whether the account may do what the work takes; a warning at most: more may be granted further down."""
    if missing is None:
        return Diagnostic(
            severity=Severity.WARNING, target="privileges", message="vCenter does not tell this account what it may do"
        )
    if missing:
        text = f"not granted on the data centre: {', '.join(missing)}"
        return Diagnostic(severity=Severity.WARNING, target="privileges", message=text)
    return Diagnostic(severity=Severity.OK, target="privileges", message="all that provision and destroy take")


def _trust(found: Endpoint) -> Diagnostic:
    if found.insecure:
        text = "the certificate is not verified; anyone on the way can read along"
        return _part(found, "insecure", text, Severity.WARNING)
    if found.thumbprint is not None:
        return _part(found, "thumbprint", found.thumbprint)
    return _part(found, "ca_file", str(found.ca_file) if found.ca_file else "the system's certificate authorities")
