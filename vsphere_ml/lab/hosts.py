"""How a lab's ESXi hosts are entered: their shells listen on loopback addresses, and the lab keeps the keys."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from vsphere_ml.core.spec import HostAccess, HostService
from vsphere_ml.lab import state

if TYPE_CHECKING:
    from pathlib import Path


def access(name: str) -> HostAccess | None:
    """Return the way into the hosts of the lab called `name`; None when it has no shells."""
    home = state.folder(name)
    told = _told(home / "esxi_hosts.json")
    if not told:
        return None
    return HostAccess(
        user="root",
        key_file=home / "esxi_key",
        fingerprints={str(each["name"]): str(each["fingerprint"]) for each in told},
        addresses={str(each["name"]): f"{each['address']}:{each['port']}" for each in told},
        service=HostService.START,
    )


def _told(file: Path) -> list[dict[str, object]]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    return found if isinstance(found, list) else []
