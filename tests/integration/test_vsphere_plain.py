"""A cross-check on govmomi's own simulator, unmodified: nothing of what is shown here leans on the lab's code."""

from __future__ import annotations

import hashlib
import socket
import ssl
import subprocess
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from tests.waiting import until
from vsphere_ml.core.model.placement import Target, WantNic
from vsphere_ml.core.plan.changes import (
    CloneVm,
    CreateFolder,
    DeleteFolder,
    DeleteRule,
    DeleteVm,
    MakeRule,
    Marks,
    PowerOff,
    PowerOn,
)
from vsphere_ml.core.ports.vcenter import Scope
from vsphere_ml.core.units import gib
from vsphere_ml.lab import build
from vsphere_ml.vsphere.connection import session
from vsphere_ml.vsphere.connection.tls import Trust
from vsphere_ml.vsphere.gateway import Gateway

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vsphere_ml.core.errors import VsmlError
    from vsphere_ml.core.plan.changes import Change

pytestmark = pytest.mark.peers
SCOPE = Scope(owner="plain", vms=frozenset({"DC0_H0_VM0"}))
MARKS = Marks(cluster="plain", node="n-1")


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """Run plain vcsim; its certificate signs itself."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    process = subprocess.Popen(
        [build.vcsim(), "-l", address, "-username", "user", "-password", "password"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait_for(address)
        yield address
    finally:
        process.kill()
        process.wait()


def _wait_for(address: str) -> None:
    host, port = address.split(":")

    def answers() -> bool:
        with suppress(OSError), socket.create_connection((host, int(port)), 10):
            return True
        return False

    until(answers, "vcsim did not start")


@pytest.fixture
def gateway(server: str) -> Iterator[Gateway]:
    host, port = server.split(":")
    der = ssl.PEM_cert_to_DER_cert(ssl.get_server_certificate((host, int(port))))
    pin = hashlib.sha256(der).hexdigest()
    made = Gateway(session.connect(server, "user", "password", Trust(thumbprint=pin), timeout_s=60))
    yield made
    made.close()


def settle(gateway: Gateway, change: Change) -> VsmlError | None:
    (task,) = gateway.start([change])
    for _ in range(100):
        for update in gateway.wait([task], 10):
            if update.done:
                return update.error
    pytest.fail(f"{change} does not end")


def test_a_look_reads_a_site_without_gpus(gateway: Gateway) -> None:
    site = gateway.read_site(SCOPE)
    assert site.datacenter == "DC0"
    assert [host.name for host in site.hosts if host.cluster] == ["DC0_C0_H0", "DC0_C0_H1", "DC0_C0_H2"]
    assert [host.gpus for host in site.hosts] == [()] * 4
    assert {"VM Network", "DC0_DVPG0"} <= {network.name for network in site.networks}
    assert site.clusters[0].pools[site.clusters[0].root_pool] == "/DC0/host/DC0_C0/Resources"


def test_a_vm_is_cloned_marked_ruled_run_and_deleted(gateway: Gateway) -> None:
    assert settle(gateway, CreateFolder(path="a/b", marks=Marks(cluster="plain"))) is not None  # nothing seen yet
    site = gateway.read_site(SCOPE)
    host = next(each for each in site.hosts if each.cluster)
    source = next(each for each in site.vms if each.name == "DC0_H0_VM0")
    network = next(each for each in site.networks if each.name == "DC0_DVPG0")
    cluster = site.clusters[0]
    target = Target(
        cpus=2,
        memory=gib(1),
        disk=None,
        hardware_version=0,
        cpu_reservation_mhz=0,
        latency="normal",
        extra_config={"numa.nodeAffinity": "0"},
        devices=(WantNic(network=network.ref, network_name=network.name),),
    )
    clone = CloneVm(
        vm="n-1",
        marks=MARKS,
        source=source.ref,
        source_name=source.name,
        snapshot=None,
        host=host.ref,
        host_name=host.name,
        pool=cluster.root_pool,
        datastore=site.datastores[0].ref,
        folder="a/b",
        target=target,
        devices=True,
    )
    assert settle(gateway, CreateFolder(path="a/b", marks=Marks(cluster="plain"))) is None
    assert settle(gateway, clone) is None
    with gateway.hold("plain"):
        assert settle(gateway, PowerOn(vm="n-1")) is None
    assert settle(gateway, MakeRule(cluster=cluster.ref, name="apart", vms=("n-1",))) is None
    after = gateway.read_site(SCOPE)
    (vm,) = [each for each in after.vms if each.cluster_mark == "plain"]
    assert (vm.name, vm.node_mark, vm.powered_on, vm.cpus, vm.memory) == ("n-1", "n-1", True, 2, gib(1))
    assert vm.settings is not None
    assert [getattr(device, "network", None) for device in vm.settings.devices] == [network.ref]
    (rule,) = after.clusters[0].rules
    assert rule.vms == {vm.ref}
    undo = (
        PowerOff(vm="n-1"),
        DeleteRule(cluster=cluster.ref, name="apart", key=rule.key),
        DeleteVm(vm="n-1"),
        DeleteFolder(path="a/b"),
        DeleteFolder(path="a"),
    )
    assert [settle(gateway, change) for change in undo] == [None] * len(undo)
    last = gateway.read_site(SCOPE)
    assert {each.name for each in last.vms} == {each.name for each in site.vms}
    assert last.folders == site.folders
