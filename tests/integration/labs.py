"""Labs for tests: a process of its own, its state in a temporary folder, gone at the end."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from vsphere_ml.cli.wiring.site_wiring import SystemClock
from vsphere_ml.flows.cluster.provision import provision
from vsphere_ml.flows.hosts.host_session import HostSession
from vsphere_ml.flows.run_context import RunContext
from vsphere_ml.lab import server
from vsphere_ml.vsphere.connection import session
from vsphere_ml.vsphere.connection.tls import Trust
from vsphere_ml.vsphere.connection.trace import Trace
from vsphere_ml.vsphere.esxi.esx_hosts import EsxHosts
from vsphere_ml.vsphere.gateway import Gateway

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from vsphere_ml.core.model.spec import ClusterSpec
    from vsphere_ml.flows.cluster.report import Report
    from vsphere_ml.lab.state import Lab

CX6 = '{ model = "ConnectX-6 Dx", port_group = "roce" }'
_FILE = """\
[cluster]
name = "{name}"
[vcenter]
lab = "default"
[location]
datacenter = "lab-dc"
cluster = "{cluster}"
folder = "{name}"
datastore = "vsan"
[source]
template = "ubuntu-22.04-gpu"
[[nodes]]
name = "{name}-[1-{nodes}]"
cpus = 2
memory = "32GiB"
network = {{ port_group = "vm-mgmt" }}
nic = {nic}
gpu = {gpu}
{more}
"""


def cluster_file(name: str, *, cluster: str, gpu: str, nic: str = CX6, nodes: int = 1, more: str = "") -> str:
    """Return the file of small nodes in a lab's cluster; `more` are tables that follow."""
    return _FILE.format(name=name, cluster=cluster, gpu=gpu, nic=nic, nodes=nodes, more=more)


@contextmanager
def running(state: Path, topology: str = server.DEFAULT_TOPOLOGY) -> Iterator[Lab]:
    """Run a lab; its folder is `state`, so that tests side by side do not meet."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VSML_STATE_DIR", str(state))
        started, _ = server.start_lab(topology)
        try:
            yield started
        finally:
            server.stop_lab()


@contextmanager
def with_library(folder: Path, library: str) -> Iterator[Lab]:
    """Run the quad lab with a content library, given as tables of a topology file; other paths start in the folder."""
    topology = folder / "libraries.toml"
    topology.write_text(server.topology_file("quad-8.0u3").read_text() + library)
    with running(folder / "state", str(topology)) as started:
        yield started


def sign_in(lab: Lab, *, timeout_s: float = 60.0, trace: Path | None = None) -> session.Session:
    """Return a session of its own, TLS verified by the lab's CA."""
    return session.connect(
        lab.address,
        lab.username,
        lab.password(),
        Trust(ca_file=lab.ca_file),
        timeout_s=timeout_s,
        log=Trace(trace) if trace else None,
    )


def gateway(lab: Lab) -> Gateway:
    return Gateway(sign_in(lab))


def brought(spec: ClusterSpec, lab: Lab, vcenter: Gateway) -> Report:
    """Provision, with host access over a session of its own."""
    session = sign_in(lab)
    try:
        host_session = HostSession(hosts=EsxHosts(session, pause_s=0.05), notify=lambda _: None)
        return provision(
            RunContext(spec, vcenter, lambda _: None, SystemClock()), approve=lambda _: True, session=host_session
        )
    finally:
        session.close()
