"""The lab's ESXi hosts: how their shells are entered, what they are like, and how they are to fail.

Their shells listen on loopback addresses, and the lab keeps the keys.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from vsphere_ml.core.errors import ConfigError
from vsphere_ml.core.model.spec import HostAccess, HostService
from vsphere_ml.core.nearest import nearest_name
from vsphere_ml.lab import control, state
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from vsphere_ml.lab.state import Lab

KEY = "esxi_key"  # root's private key, in the lab's folder
PASSWORD = "esxi_password"  # noqa: S105 - a file's name
KNOWN_HOSTS = "esxi_known_hosts"


@dataclass(frozen=True, slots=True, kw_only=True)
class LabHost:
    """One host as the lab has it now."""

    name: str
    esxi: str
    connection: str
    maintenance: bool
    ssh: bool  # whether its SSH service runs
    address: str
    port: int
    fingerprint: str
    faults: tuple[str, ...]
    reboot_ms: int


def folder(lab: Lab) -> Path:
    """Return where the lab keeps what one needs to sign in to its hosts."""
    return lab.password_file.parent


def hosts(lab: Lab) -> tuple[LabHost, ...]:
    """Return all hosts of the lab, in the topology's order."""
    return tuple(_host(each) for each in control.ask(lab, "GET", "hosts"))


def change(
    lab: Lab, name: str, *, faults: Sequence[str] | None = None, reboot_ms: int | None = None, back: bool = False
) -> LabHost:
    """Make the host fail in these ways and no others, reboot that slowly, or come back now; return it.

    ConfigError `lab.unknown-host` for a host that the lab has not, `lab.refused` for a fault that there is not.
    """
    known = [each.name for each in hosts(lab)]
    if name not in known:
        near = nearest_name(name, known)
        hint = f"did you mean `{near}`?" if near else "`vsml lab hosts` lists them"
        raise ConfigError(f"the lab has no host `{name}`", code="lab.unknown-host", target=name, hint=hint)
    wanted = {
        "faults": None if faults is None else list(faults),
        "reboot_ms": reboot_ms,
        "connection": "connected" if back else None,
    }
    body = {key: value for key, value in wanted.items() if value is not None}
    return _host(control.ask(lab, "POST", f"hosts/{name}", body))


def access(name: str) -> HostAccess | None:
    """Return the way into the hosts of the lab called `name`; None when it has no shells."""
    home = state.folder(name)
    answers = _read_list(home / "esxi_hosts.json")
    if not answers:
        return None
    return HostAccess(
        user="root",
        key_file=home / KEY,
        fingerprints={str(each["name"]): str(each["fingerprint"]) for each in answers},
        addresses={str(each["name"]): f"{each['address']}:{each['port']}" for each in answers},
        service=HostService.START,
    )


def _read_list(file: Path) -> list[dict[str, object]]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    return found if isinstance(found, list) else []


def _host(answers: Mapping[str, Any]) -> LabHost:
    values = {name: answers[name] for name in LabHost.__dataclass_fields__}
    return LabHost(**(values | {"faults": tuple(answers["faults"])}))
