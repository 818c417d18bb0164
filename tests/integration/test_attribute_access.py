"""pyvmomi's plain attribute access reads every property of hosts and VMs; plain vcsim fails at `vm.runtime`."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Any

import pytest
from pyVim.connect import Disconnect, SmartConnect
from pyVmomi import vim

from tests.integration import labs
from vsphere_ml.lab import server

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vsphere_ml.lab.state import Lab

pytestmark = pytest.mark.lab


@pytest.fixture(scope="module", params=sorted(server.topologies()))
def lab(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with labs.running(tmp_path_factory.mktemp("state"), request.param) as started:
        yield started


@pytest.fixture(scope="module")
def content(lab: Lab) -> Iterator[Any]:
    """Sign in as any script does, by pyvmomi itself, with nothing of vsml between."""
    host, port = lab.address.split(":")
    trust = ssl.create_default_context(cafile=str(lab.ca_file))
    instance = SmartConnect(host=host, port=int(port), user=lab.username, pwd=lab.password(), sslContext=trust)
    yield instance.content
    Disconnect(instance)


def test_a_client_without_the_ca_is_turned_away(lab: Lab) -> None:
    host, port = lab.address.split(":")
    with pytest.raises(ssl.SSLCertVerificationError):
        SmartConnect(
            host=host,
            port=int(port),
            user=lab.username,
            pwd=lab.password(),
            sslContext=ssl.create_default_context(),
        )


@pytest.mark.parametrize("kind", [vim.HostSystem, vim.VirtualMachine])
def test_every_property_is_read(content: Any, kind: Any) -> None:
    found = everything(content, kind)
    assert found
    properties = [prop.name for prop in kind._GetPropertyList()]
    assert len(properties) > 30
    failed = [text for each in found for name in properties if (text := refusal(each, name))]
    assert failed == []


def test_what_scripts_read_has_a_value(content: Any) -> None:
    for host in everything(content, vim.HostSystem):
        assert host.hardware.numaInfo.numNodes == len(host.hardware.numaInfo.numaNode) > 0
        # A GPU that is handed through whole is no graphics device of the host.
        assert host.config.graphicsInfo or any(each.passthruActive for each in host.config.pciPassthruInfo)
        assert host.summary.runtime.connectionState == "connected"
    for machine in everything(content, vim.VirtualMachine):
        assert machine.runtime.faultToleranceState == "notConfigured"
        assert machine.summary.config.name == machine.name == machine.config.name
        assert machine.config.hardware.device


def everything(content: Any, kind: Any) -> list[Any]:
    view = content.viewManager.CreateContainerView(content.rootFolder, [kind], recursive=True)
    try:
        return list(view.view)
    finally:
        view.Destroy()


def refusal(thing: Any, name: str) -> str:
    """Return what reading one attribute raises, or nothing."""
    try:
        getattr(thing, name)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is what a script would meet
        return f"{thing._moId}.{name}: {type(error).__name__}: {error}"
    return ""
