"""Builds what a cluster's ESXi hosts are entered with, beyond the vSphere API."""

from __future__ import annotations

import os
import socket
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vsphere_ml.cli.terminal import Terminal
    from vsphere_ml.cli.wiring.journal import Journal
    from vsphere_ml.core.model.spec import ClusterSpec, HostAccess
    from vsphere_ml.core.ports.esxi import HostShells
    from vsphere_ml.core.ports.host_events import HostListener
    from vsphere_ml.core.ports.vcenter import VCenter
    from vsphere_ml.flows.hosts.host_session import HostSession


@contextmanager
def shells(spec: ClusterSpec) -> Iterator[HostShells | None]:
    """Yield the shells of the cluster's hosts; None where the cluster file gives no access to them."""
    from vsphere_ml.core.model.spec import ShellAccess

    access = _access(spec)
    if access is None or access.access is ShellAccess.NONE:
        yield None
        return
    from vsphere_ml.cli.wiring.guest_wiring import home
    from vsphere_ml.config.secrets.guest_secrets import secret
    from vsphere_ml.ssh.esxi import EsxiShells

    source = access.password
    password = secret("hosts.password", source, f"{access.user}@{spec.name}", os.environ) if source else None
    made = EsxiShells(access, home(spec) / "hosts" / spec.name, password)
    try:
        yield made
    finally:
        made.close()


@contextmanager
def connect_site(
    spec: ClusterSpec, terminal: Terminal, journal: Journal | None = None, *, allow_downtime: bool = False
) -> Iterator[tuple[VCenter, HostSession | None]]:
    """Yield the signed-in vCenter of a spec, and the session to its hosts; None where they are not to be configured."""
    from vsphere_ml.cli.wiring import site_wiring

    if not spec.host_config:
        with site_wiring.vcenter(spec.vcenter, terminal) as vcenter:
            yield vcenter, None
        return
    from vsphere_ml.cli.views.progress.host_progress import show_host_progress
    from vsphere_ml.cli.wiring.journal import journal_host_steps
    from vsphere_ml.core.hosts.host_plan import DisruptionPolicy
    from vsphere_ml.flows.hosts.host_session import HostSession

    with ExitStack() as stack:
        opened = stack.enter_context(shells(spec))
        vcenter, hosts, server = stack.enter_context(site_wiring.vcenter_and_hosts(spec.vcenter, terminal))
        notify: HostListener = stack.enter_context(show_host_progress(terminal.err))
        notify = journal_host_steps(journal, notify) if journal is not None else notify
        yield (
            vcenter,
            HostSession(
                hosts=hosts,
                notify=notify,
                shells=opened,
                # as for any VM that provision stops: shut down where VMware Tools run, powered off otherwise
                leave=DisruptionPolicy(downtime=allow_downtime, power_off=allow_downtime),
                vcenter=names_of(server),
            ),
        )


def names_of(server: str) -> frozenset[str]:
    """Return the names and addresses of a vCenter at `host:port`, by which its own VM is recognised."""
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
