"""The `[guest]` table: how guests are entered, and what is made of them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from vsphere_ml.config.reading import report_unknown
from vsphere_ml.config.secrets.sources import one_source, source_of
from vsphere_ml.config.tables.paths import path_of
from vsphere_ml.core.model.spec import FirstBootBy, GuestAccess, HostKeys, JumpHost, LoginKey

if TYPE_CHECKING:
    from pathlib import Path

    from vsphere_ml.config import schema
    from vsphere_ml.config.mistakes import Mistakes

# What useradd takes, and what domains add: `DOMAIN\name`, `name@domain`. None begins as an option of ssh does.
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@\\$-]*")


def check_guests(table: schema.GuestTable, nodes: list[str], mistakes: Mistakes) -> None:
    """Report fingerprints of no node, keys that exclude each other, and secrets with several sources or none."""
    if table.key is not None and table.key_file is not None:
        mistakes.add(("guest", "key"), "contradicts `key_file`; leave one of them out")
    if table.first_boot is not FirstBootBy.CUSTOMIZATION:
        for key in ("customization_spec", "domain"):
            if getattr(table, key) is not None:
                mistakes.add(("guest", key), 'is for first_boot = "customization"')
    if isinstance(table.host_keys, dict):
        known = set(nodes)
        for name in table.host_keys:
            if nodes and name not in known:
                report_unknown(("guest", "host_keys", name), nodes, mistakes, "node")
    check_users(table, "guest", mistakes)
    one_source(table.sudo_password, ("guest", "sudo_password"), mistakes)
    for name, source in (table.secrets or {}).items():
        one_source(source, ("guest", "secrets", name), mistakes)


def check_users(table: schema.GuestTable | schema.HostsTable, name: str, mistakes: Mistakes) -> None:
    """Report users of a table and of its jump host that cannot be meant: some would be options of ssh."""
    for at, user in (((name, "user"), table.user), ((name, "jump", "user"), table.jump and table.jump.user)):
        if user and not _USER.fullmatch(user):
            mistakes.add(at, "is not the name of a user; write it as `id -un` prints it there")


def access(table: schema.GuestTable, base: Path) -> GuestAccess:
    """Return the table as a value; its relative paths start at `base`."""
    known = GuestAccess()
    keys = table.host_keys or known.host_keys
    key_file = path_of(table.key_file, base)
    first_boot = table.first_boot or FirstBootBy.CLOUD_INIT
    return GuestAccess(
        user=table.user or known.user,
        port=table.port or known.port,
        first_boot=first_boot,
        domain=table.domain or known.domain,
        customization_spec=table.customization_spec,
        key=table.key or _own_key(first_boot),
        key_file=key_file,
        jump=jump(table.jump, base, key_file) if table.jump else None,
        host_keys=HostKeys.PINNED if isinstance(keys, dict) else keys,
        fingerprints=keys if isinstance(keys, dict) else {},
        sudo_password=source_of(table.sudo_password, base) if table.sudo_password else None,
        playbooks=tuple(table.playbooks or ()),
        settings=table.settings or {},
        secrets={name: source_of(source, base) for name, source in (table.secrets or {}).items()},
    )


def _own_key(first_boot: FirstBootBy) -> LoginKey:
    """Return whose key signs in when nobody says: the cluster's own where the first boot brings it to the guests."""
    return LoginKey.CLUSTER if first_boot is FirstBootBy.CLOUD_INIT else LoginKey.AGENT


def jump(table: schema.Jump, base: Path, key_file: Path | None) -> JumpHost:
    """Return the table as a value; its key is that of what is behind it, unless it has one of its own."""
    return JumpHost(
        host=table.host,
        port=table.port or 22,
        user=table.user or "root",
        key_file=path_of(table.key_file, base) or key_file,
        fingerprint=table.fingerprint,
    )
