"""Builds what a cluster's ESXi hosts are entered with, beyond the vSphere API."""

from __future__ import annotations

import os
import socket
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vsphere_ml.core.host_ports import HostShells
    from vsphere_ml.core.spec import ClusterSpec, HostAccess


@contextmanager
def shells(spec: ClusterSpec) -> Iterator[HostShells | None]:
    """Yield the shells of the cluster's hosts; None where the cluster file opens no door to them."""
    from vsphere_ml.core.spec import HostDoor

    access = _access(spec)
    if access is None or access.door is HostDoor.NONE:
        yield None
        return
    from vsphere_ml.cli.guest_wiring import home
    from vsphere_ml.config.guest_secrets import secret
    from vsphere_ml.ssh.esxi import EsxiShells

    source = access.password
    password = secret("hosts.password", source, f"{access.user}@{spec.name}", os.environ) if source else None
    made = EsxiShells(access, home(spec) / "hosts" / spec.name, password)
    try:
        yield made
    finally:
        made.close()


def names_of(server: str) -> frozenset[str]:
    """Return the names and addresses of a vCenter at `host:port`, by which its own VM is told."""
    host = server.rpartition(":")[0].strip("[]")
    try:
        found = socket.getaddrinfo(host, None)
    except (OSError, UnicodeError):
        found = []
    addresses = {str(each[4][0]) for each in found}
    local = any(each.startswith("127.") or each == "::1" for each in addresses)  # a lab, or a tunnel: says nothing
    return frozenset() if local else frozenset({host.lower(), *addresses})


def _access(spec: ClusterSpec) -> HostAccess | None:
    if spec.hosts is None and spec.vcenter.lab is not None:
        from vsphere_ml.lab import hosts

        return hosts.access(spec.vcenter.lab)
    return spec.hosts
