"""The lab's ESXi hosts: the versions tell different stories, and API, esxcli and shell tell of one state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyVim.task import WaitForTask
from pyVmomi import vim

from tests.integration import labs
from tests.integration.esxi import reboot, with_ssh
from tests.waiting import until
from vsphere_ml.cli import app
from vsphere_ml.core.errors import ConfigError, VSphereError
from vsphere_ml.lab import hosts, server
from vsphere_ml.ssh.esxi import EsxiShells
from vsphere_ml.vsphere.esxi import esxcli

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from vsphere_ml.lab.state import Lab

pytestmark = pytest.mark.lab
OPTION = "atsSupport"
MLXCONFIG = "/opt/mellanox/bin/mlxconfig -d mt4125_pciconf0"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with labs.running(tmp_path_factory.mktemp("state"), "mixed-ats") as started:
        yield started


@pytest.fixture
def session(lab: Lab) -> Iterator[Any]:
    made = labs.sign_in(lab)
    yield made
    made.close()


@pytest.fixture
def shells(lab: Lab, tmp_path: Path) -> Iterator[EsxiShells]:
    access = hosts.access(lab.name)
    assert access is not None
    made = EsxiShells(access, tmp_path)
    yield made
    made.close()


@pytest.fixture
def host(session: Any) -> Callable[[str], Any]:
    def find(name: str) -> Any:
        root = session.content.rootFolder
        view = session.content.viewManager.CreateContainerView(root, [vim.HostSystem], recursive=True)
        return next(each for each in view.view if each.name == name)

    return find


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("esx-u1.lab.test", ("7.0.1", "", "none")),
        ("esx-u2.lab.test", ("7.0.2", "FALSE", "esxcli")),
        ("esx-u3.lab.test", ("7.0.3", "TRUE", "esxcli and option")),
        ("esx-8.lab.test", ("8.0.3", "TRUE", "esxcli and option")),
        ("esx-amd.lab.test", ("8.0.3", "TRUE", "esxcli and option")),
    ],
)
def test_each_version_has_ats_in_its_own_way(session: Any, host: Any, name: str, told: tuple[str, str, str]) -> None:
    version, default, accesses = told
    found = host(name)
    assert found.config.product.version == version
    options = found.configManager.advancedOption
    if "option" in accesses:
        assert options.QueryOptions(f"VMkernel.Boot.{OPTION}")[0].value is True
    else:
        with pytest.raises(vim.fault.InvalidName):
            options.QueryOptions(f"VMkernel.Boot.{OPTION}")
    if accesses == "none":
        with pytest.raises(esxcli.EsxcliError, match=f"Key Name: {OPTION}"):
            esxcli.run(session, found, "system.settings.kernel.list", option=OPTION)
    else:
        (row,) = esxcli.run(session, found, "system.settings.kernel.list", option=OPTION)
        assert (row["Configured"], row["Runtime"], row["Default"]) == (default,) * 3


def test_shell_and_api_tell_of_one_state_and_the_boot_puts_it_in_force(
    session: Any, host: Any, shells: EsxiShells
) -> None:
    name = "esx-u2.lab.test"
    found = host(name)
    with_ssh(found)

    def kernel() -> list[str]:
        texts = shells.run(name, f"esxcli system settings kernel list -o {OPTION}").out.splitlines()[-1].split()[2:5]
        (row,) = esxcli.run(session, found, "system.settings.kernel.list", option=OPTION)
        assert texts == [row["Configured"], row["Runtime"], row["Default"]]
        return texts

    def firmware() -> list[str]:
        texts = shells.run(name, f"{MLXCONFIG} -e query ATS_ENABLED").out
        return next(line.replace("*", " ").split()[1:] for line in texts.splitlines() if "ATS_ENABLED" in line)

    assert kernel() == ["FALSE", "FALSE", "FALSE"]
    esxcli.run(session, found, "system.settings.kernel.set", setting=OPTION, value="TRUE")
    assert shells.run(name, f"{MLXCONFIG} -y set ATS_ENABLED=true").ok
    assert kernel() == ["TRUE", "FALSE", "FALSE"]
    assert firmware() == ["False(0)", "False(0)", "True(1)"]
    reboot(found)
    with pytest.raises(VSphereError):
        shells.run(name, "true")  # the service is not started with the host
    with_ssh(found)
    assert kernel() == ["TRUE", "TRUE", "FALSE"]
    assert firmware() == ["False(0)", "True(1)", "True(1)"]
    other = shells.run(name, f"{MLXCONFIG}.1 query ATS_ENABLED").out
    assert "False(0)" in other  # each port has a setting of its own


def test_a_host_that_went_away_comes_back_when_asked(lab: Lab, host: Any) -> None:
    name = "esx-amd.lab.test"
    found = host(name)
    assert hosts.change(lab, name, faults=["no-return"]).faults == ("no-return",)
    WaitForTask(found.Reboot(force=True))
    until(lambda: found.runtime.connectionState == "notResponding", "vCenter does not miss the host")
    assert found.runtime.powerState == "unknown"
    back = hosts.change(lab, name, faults=[], back=True)
    assert (back.connection, back.faults, found.runtime.powerState) == ("connected", (), "poweredOn")


def test_the_command_line_lists_hosts_and_makes_them_fail(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    name = "esx-8.lab.test"
    assert app.run(["lab", "host", name, "no-mft", "ssh-refused", "--reboot-seconds", "2.5"]) == 0
    (changed,) = (each for each in hosts.hosts(lab) if each.name == name)
    assert (changed.faults, changed.reboot_ms) == (("no-mft", "ssh-refused"), 2500)
    capsys.readouterr()
    assert app.run(["lab", "hosts"]) == 0
    shown = capsys.readouterr().out
    assert "no-mft" in shown
    assert "(lab)" in shown
    assert app.run(["lab", "host", name, "--clear"]) == 0
    assert app.run(["lab", "host", "esx-9.lab.test"]) == app.run(["lab", "host", name, "no-such"]) == 2
    assert "`esx-8.lab.test`?" in capsys.readouterr().err
    with pytest.raises(ConfigError, match="no-such"):
        hosts.change(lab, name, faults=["no-such"])


def test_sixteen_hosts_of_which_one_dies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VSML_STATE_DIR", str(tmp_path))
    started, _ = server.start_lab("sixteen-7.0u2")
    try:
        listed = hosts.hosts(started)
        assert len(listed) == len({each.address for each in listed}) == len({each.fingerprint for each in listed}) == 16
        assert [each.name for each in listed if each.faults] == ["esx-11.lab.test"]
    finally:
        server.stop_lab()
