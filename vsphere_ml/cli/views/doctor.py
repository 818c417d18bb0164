"""What `vsml doctor` found out, check by check."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from vsphere_ml.cli.views.text import line, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from vsphere_ml.config.secrets import Connection

STYLES = {"ok": "green", "warning": "yellow", "failed": "bold red"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was looked at: ok, warning or failed, and what was seen."""

    name: str
    state: str
    told: str


def text(checks: Sequence[Check]) -> Table:
    """Return one line a check."""
    rows = ((line((each.state, STYLES[each.state])), each.name, each.told) for each in checks)
    return table(("STATE", "CHECK", "WHAT WAS SEEN"), rows)


def data(checks: Sequence[Check]) -> dict[str, Any]:
    """Return the checks' fields."""
    return {"checks": [asdict(each) for each in checks]}


def sources(found: Connection) -> list[Check]:
    """Return where each part of a connection was found; of the password only where."""
    told = {"server": found.server, "username": found.username, "password": "***", **_trust(found)}
    return [
        Check(name=name, state="warning" if name == "insecure" else "ok", told=f"{value} (from {_from(found, name)})")
        for name, value in told.items()
    ]


def signed_in(found: Connection, about: str, api_version: str) -> list[Check]:
    """Return what a vCenter said of itself after the sign-in."""
    trusted = Check(name="certificate", state="ok", told="as the trust above wants it")
    unknown = Check(name="certificate", state="warning", told="not verified")
    return [
        unknown if found.insecure else trusted,
        Check(name="sign-in", state="ok", told=f"{about}, API {api_version}"),
    ]


def privileges(missing: Sequence[str] | None) -> Check:
    """Return whether the account may do what the work takes; a warning at most: more may be granted further down."""
    if missing is None:
        return Check(name="privileges", state="warning", told="vCenter does not tell this account what it may do")
    if missing:
        told = f"not granted on the data centre: {', '.join(missing)}"
        return Check(name="privileges", state="warning", told=told)
    return Check(name="privileges", state="ok", told="all that provision and destroy take")


def _trust(found: Connection) -> dict[str, str]:
    if found.insecure:
        return {"insecure": "the certificate is not verified; anyone on the way can read along"}
    if found.thumbprint is not None:
        return {"thumbprint": found.thumbprint}
    return {"ca_file": str(found.ca_file) if found.ca_file else "the system's certificate authorities"}


def _from(found: Connection, name: str) -> str:
    return found.where.get(name, "the default")
