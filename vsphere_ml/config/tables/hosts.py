"""The tables about ESXi hosts: how they are entered, and how far they are made ready."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.config.secrets.sources import one_source, source_of
from vsphere_ml.config.tables.guests import check_users, jump
from vsphere_ml.config.tables.paths import path_of
from vsphere_ml.core.model.spec import Evacuation, HostAccess, HostConfigKind, HostConfigSpec, HostKeys

if TYPE_CHECKING:
    from pathlib import Path

    from vsphere_ml.config import schema
    from vsphere_ml.config.mistakes import Mistakes


def check_hosts(table: schema.HostsTable | None, mistakes: Mistakes) -> None:
    """Report a password with several sources or none, and one beside a key."""
    if table is None:
        return
    check_users(table, "hosts", mistakes)
    one_source(table.password, ("hosts", "password"), mistakes)
    if table.password is not None and table.key_file is not None:
        mistakes.add(("hosts", "password"), "`key_file` is set too; leave one of them out")


def check_host_config(ready: HostConfigSpec, mistakes: Mistakes) -> None:
    """Report a number of virtual functions where nothing may be done about them."""
    if ready.virtual_functions is not None and HostConfigKind.SRIOV not in ready.kinds:
        text = "asks for nothing, since `sriov` is not among host_config.kinds"
        mistakes.add(("host_config", "virtual_functions"), text, 'kinds = ["sriov"]')


def access(table: schema.HostsTable | None, base: Path) -> HostAccess | None:
    """Return the table as a value; None without one."""
    if table is None:
        return None
    known = HostAccess()
    keys = table.host_keys or known.host_keys
    key_file = path_of(table.key_file, base)
    return HostAccess(
        access=table.access,
        user=table.user or known.user,
        port=table.port or known.port,
        key_file=key_file,
        password=source_of(table.password, base) if table.password else None,
        jump=jump(table.jump, base, key_file) if table.jump else None,
        host_keys=HostKeys.PINNED if isinstance(keys, dict) else keys,
        fingerprints=keys if isinstance(keys, dict) else {},
        addresses=table.addresses or {},
        service=table.service,
    )


def host_config(table: schema.HostConfigTable | None) -> HostConfigSpec:
    """Return how far hosts are made ready; without a table, not at all."""
    if table is None:
        return HostConfigSpec()
    return HostConfigSpec(
        kinds=frozenset(table.kinds or ()),
        virtual_functions=table.virtual_functions,
        evacuate=table.evacuate or Evacuation.SHUT_DOWN,
    )
