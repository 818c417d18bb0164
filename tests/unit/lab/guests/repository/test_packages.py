from __future__ import annotations

import re
import shutil
import stat
import subprocess
from typing import TYPE_CHECKING

import pytest

from vsphere_ml.lab import server
from vsphere_ml.lab.guests import hub
from vsphere_ml.lab.guests.repository import datastores, packages

if TYPE_CHECKING:
    from pathlib import Path

STANDINS = [each for each in hub.HERE.joinpath("standins").rglob("*") if each.is_file()]


@pytest.mark.parametrize("program", [each for each in STANDINS if each.parent.name in {"bin", "base"}], ids=str)
def test_each_stand_in_is_a_shell_script_that_says_what_it_is(program: Path) -> None:
    assert subprocess.run(["/bin/sh", "-n", program], check=False).returncode == 0
    assert {"stand-in", "vsml"} <= set(re.findall(r"[\w-]+", program.read_text()))


def test_the_guest_driver_suits_the_sites_vgpu_manager() -> None:
    topologies = server.topologies()
    assert packages.driver_version(topologies["quad-8.0u3"]).startswith("535.")
    assert packages.driver_version(topologies["seed-7.0u2"]).startswith("470.")


@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="needs the Debian package dpkg, for dpkg-deb")
def test_the_repository_names_each_package_as_the_playbooks_do(tmp_path: Path) -> None:
    packages.build(tmp_path, "535.183.04")
    index = (tmp_path / "Packages").read_text()
    for name in ("doca-ofed", "nvidia-linux-grid-535", "nvidia-container-toolkit", "docker.io"):
        assert f"Package: {name}\n" in index
    (file,) = tmp_path.glob("doca-ofed_*.deb")
    listed = subprocess.run(["dpkg-deb", "-c", file], check=True, capture_output=True, text=True).stdout
    assert "-rwxr-xr-x root/root" in next(line for line in listed.splitlines() if line.endswith("/usr/bin/mst"))
    assert not stat.S_IMODE(file.stat().st_mode) & stat.S_IXOTH


def test_drivers_lie_on_the_datastores_that_want_them(tmp_path: Path) -> None:
    topology = tmp_path / "site.toml"
    topology.write_text('[[datastore]]\nname = "a"\nstand_ins = "deep/drivers"\n[[datastore]]\nname = "b"\n')
    (tmp_path / "packages").mkdir()
    for name in ("nvidia-linux-grid-535_535.1_all.deb", "docker.io_1_all.deb"):
        (tmp_path / "packages" / name).touch()
    datastores.lay(topology, tmp_path / "packages", tmp_path / "stores")
    laid = [str(each.relative_to(tmp_path / "stores")) for each in (tmp_path / "stores").rglob("*.deb")]
    assert laid == ["a/deep/drivers/nvidia-linux-grid-535_535.1_all.deb"]
