"""Hosts in lockdown mode: SSH is for exception users alone, and vsml reads that before it tries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyVmomi import vim

from tests.integration import labs
from tests.integration.esxi import with_ssh
from vsphere_ml.core.errors import VSphereError
from vsphere_ml.core.model.esxi_state import DesiredState, Lockdown, LockdownMode
from vsphere_ml.core.model.inventory import HostRef
from vsphere_ml.lab import hosts
from vsphere_ml.lab.server import topology_file
from vsphere_ml.ssh.esxi import EsxiShells
from vsphere_ml.vsphere.esxi.esx_hosts import EsxHosts

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from vsphere_ml.lab.state import Lab

pytestmark = pytest.mark.lab

IMAGE = "[[cluster]]\nimage = true"
LOCKED = """
[[host]]
name = "esx-01.lab.test"
profile = true
profile_differs = ["Security.PasswordMaxDays differs"]
lockdown = "strict"
lockdown_exceptions = ["backup"]

[[host]]
name = "esx-02.lab.test"
ssh_key = "rsa"
image_differs = true
lockdown = "normal"
lockdown_exceptions = ["root"]
"""


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    topology = tmp_path / "locked.toml"
    topology.write_text(topology_file("quad-8.0u3").read_text().replace("[[cluster]]", IMAGE, 1) + LOCKED)
    with labs.running(tmp_path / "state", str(topology)) as started:
        yield started


def test_only_exception_users_enter_a_host_in_lockdown(lab: Lab, tmp_path: Path) -> None:
    session = labs.sign_in(lab)
    access = hosts.access(lab.name)
    assert access is not None
    shells = EsxiShells(access, tmp_path)
    try:
        view = session.content.viewManager.CreateContainerView(session.content.rootFolder, [vim.HostSystem], True)
        found = {each.name: each for each in view.view}
        strict, normal = found["esx-01.lab.test"], found["esx-02.lab.test"]
        seen = EsxHosts(session).see([HostRef(strict._GetMoId()), HostRef(normal._GetMoId())])
        assert [each.lockdown for each in seen.values()] == [
            Lockdown(mode=LockdownMode.STRICT, exceptions=("backup",)),
            Lockdown(mode=LockdownMode.NORMAL, exceptions=("root",)),
        ]
        assert [each.desired for each in seen.values()] == [
            DesiredState(image=True, profile=True, profile_differs=("Security.PasswordMaxDays differs",)),
            DesiredState(image=True, image_differs=True),
        ]
        for host in (strict, normal):
            with_ssh(host)
        assert shells.run(normal.name, "true").ok
        pinned = next(line for line in (tmp_path / "known_hosts").read_text().splitlines() if " ssh-rsa " in line)
        assert shells.target(normal.name).host in pinned
        with pytest.raises(VSphereError) as refused:
            shells.run(strict.name, "true")
        assert refused.value.code == "host.sign-in"
        strict.configManager.hostAccessManager.ChangeLockdownMode("lockdownDisabled")
        assert shells.run(strict.name, "true").ok
    finally:
        shells.close()
        session.close()
