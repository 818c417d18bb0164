"""Nodes are cloned from a template that is deployed from an OVF package once: an own file, or a library's item."""

from __future__ import annotations

import hashlib
import socket
import ssl
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from pyVmomi import vim

from tests.fakes import ovf
from tests.integration import labs
from vsphere_ml.cli.wiring.site_wiring import SystemClock
from vsphere_ml.config.load import load_text
from vsphere_ml.core.plan.changes import CloneVm, CreateFolder, DeployTemplate
from vsphere_ml.core.plan.outcome import Failed
from vsphere_ml.flows.cluster.destroy import destroy
from vsphere_ml.flows.run_context import RunContext
from vsphere_ml.flows.site.read_site import scope
from vsphere_ml.vsphere.changes import deployment
from vsphere_ml.vsphere.connection.tls import PinMismatchError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from vsphere_ml.core.model.inventory import Vm
    from vsphere_ml.core.model.spec import ClusterSpec
    from vsphere_ml.flows.cluster.report import Report
    from vsphere_ml.lab.state import Lab
    from vsphere_ml.vsphere.gateway import Gateway

pytestmark = pytest.mark.lab
LIBRARY = """
[[library]]
name = "images"
datastore = "nfs-images"
[[library.item]]
name = "cloud"
ovf = "packages/ubuntu.ova"
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("ovf")
    ovf.package(folder / "packages")
    ovf.archive(folder / "packages")
    with labs.with_library(folder, LIBRARY) as started:
        yield started


@pytest.fixture(params=["ovf", "ova", "library"])
def wanted(request: pytest.FixtureRequest, tmp_path: Path, lab: Lab, gateway: Gateway) -> Iterator[ClusterSpec]:
    """A cluster of two nodes from each kind of package, removed at the end."""
    ovf.package(tmp_path)
    ovf.archive(tmp_path)
    sources = {
        "ovf": 'ovf = "ubuntu.ovf"',
        "ova": 'ovf = "ubuntu.ova"',
        "library": 'library = "images"\nitem = "cloud"',
    }
    made = spec(tmp_path, f"pack-{request.param}", sources[request.param])
    yield made
    removed(made, gateway)


def spec(folder: Path, name: str, source: str, nodes: int = 2) -> ClusterSpec:
    text = labs.cluster_file(name, cluster="gpu", gpu='{ profile = "A100-40C" }', nodes=nodes)
    return load_text(text.replace('template = "ubuntu-22.04-gpu"', source), folder / "cluster.toml")


def removed(wanted: ClusterSpec, gateway: Gateway) -> Report:
    run = RunContext(wanted, gateway, lambda _: None, SystemClock())
    return destroy(run, approve=lambda _: True)


def templates(wanted: ClusterSpec, gateway: Gateway) -> list[Vm]:
    seen = gateway.read_site(scope(wanted)).vms
    return [vm for vm in seen if vm.cluster_mark == wanted.name and vm.template]


def test_a_template_is_deployed_once_cloned_and_removed_with_the_cluster(
    wanted: ClusterSpec, lab: Lab, gateway: Gateway
) -> None:
    first = labs.brought(wanted, lab, gateway)
    assert first.done
    assert [type(change) for change in first.plan.changes][:2] == [CreateFolder, DeployTemplate]
    assert sum(isinstance(change, CloneVm) for change in first.plan.changes) == 2
    (template,) = templates(wanted, gateway)
    assert template.settings is not None
    assert (template.settings.firmware, template.cpus, template.hardware_version) == ("efi", 2, 20)
    again = labs.brought(wanted, lab, gateway)
    assert (again.done, again.applied) == (True, False)
    assert removed(wanted, gateway).done
    assert not [vm for vm in gateway.read_site(scope(wanted)).vms if vm.cluster_mark == wanted.name]


@pytest.mark.parametrize("cut", ["upload", "mark"])
def test_what_a_cut_run_has_left_is_replaced(
    cut: str, lab: Lab, gateway: Gateway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ovf.package(tmp_path)
    wanted = spec(tmp_path, "cut", 'ovf = "ubuntu.ovf"', nodes=1)

    def break_off(upload: deployment._Upload) -> None:
        raise upload._broken("cut")

    def refuse(_vm: vim.VirtualMachine) -> None:
        raise vim.fault.InvalidState

    with monkeypatch.context() as patch:
        if cut == "upload":
            patch.setattr(deployment._Upload, "finish", break_off)
        else:
            patch.setattr(vim.VirtualMachine, "MarkAsTemplate", refuse)
        failed = labs.brought(wanted, lab, gateway)
    assert not failed.done
    assert [each.error.code for each in failed.outcomes if isinstance(each, Failed)] == [
        "ovf.upload" if cut == "upload" else "vsphere.invalid-state"
    ]
    left = [vm.template for vm in gateway.read_site(scope(wanted)).vms if vm.cluster_mark == "cut"]
    assert left == ([] if cut == "upload" else [False])  # an import that is given up is removed by vCenter
    assert labs.brought(wanted, lab, gateway).done
    assert len(templates(wanted, gateway)) == 1
    assert removed(wanted, gateway).done


def test_another_content_is_another_template_and_the_old_one_is_named(
    lab: Lab, gateway: Gateway, tmp_path: Path
) -> None:
    ovf.package(tmp_path)
    one = spec(tmp_path, "drift", 'ovf = "ubuntu.ovf"', nodes=1)
    assert labs.brought(one, lab, gateway).done
    ovf.package(tmp_path, disk=ovf.DISK + b"more")
    fresh = labs.gateway(lab)
    try:
        again = labs.brought(one, lab, fresh)  # nobody is cloned, so nothing is deployed
        assert (again.done, again.applied) == (True, False)
        assert [each.code for each in again.plan.diagnostics] == ["template.unused"]
        two = labs.brought(replace(one, nodes=spec(tmp_path, "drift", 'ovf = "ubuntu.ovf"').nodes), lab, fresh)
        assert two.done
        assert len(templates(one, fresh)) == 2
        assert removed(one, fresh).done
        assert templates(one, fresh) == []
    finally:
        fresh.close()


def test_a_file_that_is_not_the_manifests_is_not_taken_and_nothing_is_left(
    lab: Lab, gateway: Gateway, tmp_path: Path
) -> None:
    ovf.package(tmp_path)
    (tmp_path / "ubuntu-disk1.vmdk").write_bytes(b"x" * len(ovf.DISK))
    wanted = spec(tmp_path, "torn", 'ovf = "ubuntu.ovf"', nodes=1)
    failed = labs.brought(wanted, lab, gateway)
    assert [each.error.code for each in failed.outcomes if isinstance(each, Failed)] == ["ovf.checksum"]
    assert not [vm for vm in gateway.read_site(scope(wanted)).vms if vm.cluster_mark == "torn"]
    assert removed(wanted, gateway).done


def test_a_hosts_certificate_is_compared_with_the_thumbprint_that_vcenter_tells(lab: Lab) -> None:
    session = labs.sign_in(lab)
    host, port = "127.0.0.1", int(lab.address.rpartition(":")[2])
    context = ssl._create_unverified_context()
    with socket.create_connection((host, port)) as plain, context.wrap_socket(plain) as secure:
        digest = hashlib.sha1(secure.getpeercert(binary_form=True) or b"").hexdigest().upper()
    try:
        told = ":".join(digest[at : at + 2] for at in range(0, len(digest), 2))
        good = session.upload_connection(host, port, told)
        good.connect()
        good.close()
        with pytest.raises(PinMismatchError):
            session.upload_connection(host, port, "00" * 20).connect()
    finally:
        session.close()
