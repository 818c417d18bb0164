"""The contract, kept by the lab's hosts: over SOAP, and over SSH in their shells."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.contract.hosts_contract import HostsContract, HostsRig
from tests.fakes.requirements import seed_cluster
from tests.integration import control, labs
from vsphere_ml.cli.wiring.site_wiring import SystemClock
from vsphere_ml.core.ports.vcenter import Scope
from vsphere_ml.flows.cluster.provision import provision
from vsphere_ml.flows.run_context import RunContext
from vsphere_ml.lab import hosts as lab_hosts
from vsphere_ml.ssh.esxi import EsxiShells
from vsphere_ml.vsphere.esxi.esx_hosts import EsxHosts

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.lab


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[HostsRig]:
    with labs.running(tmp_path / "state", "seed-7.0u2") as lab:
        gateway, session = labs.gateway(lab), labs.sign_in(lab)
        report = provision(
            RunContext(seed_cluster(2), gateway, lambda _event: None, SystemClock()), approve=lambda _plan: True
        )
        assert report.done
        for name in ("node-1", "node-2"):  # without a guest nothing runs that could be asked to shut down
            control.ask(lab, "POST", f"vms/{name}", {"guest_ip": "10.0.0.1"})
        (host,) = gateway.read_site(Scope()).hosts
        access = lab_hosts.access(lab.name)
        assert access is not None
        shells = EsxiShells(access, tmp_path / "hosts")
        yield HostsRig(EsxHosts(session, pause_s=0.1), shells, host.ref, host.name)
        shells.close()
        session.close()
        gateway.close()


class TestHostsOfTheLab(HostsContract):
    pass
