"""What sites bring as files, on a lab guest: a .run driver, MLNX_OFED, an image; and both ways of GPUDirect."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.fakes.converging import check, converge
from tests.integration import lone
from tests.integration.guests import needed
from vsphere_ml.core.errors import GuestError
from vsphere_ml.core.model.guest import GuestFacts, Peer
from vsphere_ml.guest.playbooks import playbook
from vsphere_ml.lab.guests.boot.firstboot import LabGpu
from vsphere_ml.lab.guests.repository import artifacts

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from vsphere_ml.core.model.guest import Playbook
    from vsphere_ml.ssh.session.shell import SshShell

pytestmark = [pytest.mark.lab, needed]
FACTS = GuestFacts(
    name=lone.NAME,
    cluster="train",
    peers=(Peer(name=lone.NAME, address="10.202.12.11", roce_address="172.20.0.1", slots=1),),
    gpus=1,
    profile="grid_a100-40c",
    vgpu_manager=lone.DRIVER,
    lab=True,
)
DRIVER = '[[step]]\nkind = "nvidia_driver"\nsource = "files/NVIDIA-Linux-x86_64-535.183.04-grid.run"\n'
IMAGE = (
    '[[step]]\nkind = "docker"\nregistry_mirrors = ["https://mirror.example.com"]\n'
    f'[[step]]\nkind = "image_pull"\nimage = "{artifacts.IMAGE}"\narchive = "files/image.tar"\n'
)
GPUDIRECT = '[[step]]\nkind = "gpudirect"\n'


@pytest.fixture(scope="module")
def guest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[lone.Guest]:
    folder = tmp_path_factory.mktemp("files") / "guests"
    with lone.guest(folder, "10.202.12.11", (LabGpu(profile="grid_a100-40c"),)) as running:
        yield running


@pytest.fixture
def shell(guest: lone.Guest) -> Iterator[SshShell]:
    with guest.enter() as opened:
        yield opened


def book(home: Path, *steps: str) -> Playbook:
    return playbook.load_text('about = "x"\n' + "".join(steps), home / "mine.toml")


def brought(wanted: Playbook, shell: SshShell) -> bool:
    """Converge, and see that nothing is missing then; return whether anything was changed."""
    done = converge(wanted, shell, FACTS, list[object]().append)
    assert not check(wanted, shell, FACTS).pending
    return done.changed


def test_mlnx_ofed_comes_from_its_archive_and_flashes_nothing(guest: lone.Guest, shell: SshShell) -> None:
    values = {"ofed_file": str(guest.home / "files" / "MLNX_OFED_LINUX-24.10-lab.tgz"), "ofed_version": "24.10"}
    wanted = playbook.load(playbook.find("roce-mlnx-ofed", guest.home), values=values)
    assert brought(wanted, shell)
    with pytest.raises(GuestError) as refused:
        shell.run("/var/cache/vsml/ofed/mlnxofedinstall --force")
    assert "flash" in refused.value.details[-1]


def test_the_run_driver_is_installed_and_a_damaged_one_refused(guest: lone.Guest, shell: SshShell) -> None:
    with pytest.raises(GuestError, match="sha256sum"):
        brought(book(guest.home, f'{DRIVER}sha256 = "{"0" * 64}"\n'), shell)
    assert brought(book(guest.home, DRIVER), shell)


def test_an_image_comes_from_its_archive(guest: lone.Guest, shell: SshShell) -> None:
    assert brought(book(guest.home, IMAGE), shell)
    assert not brought(book(guest.home, IMAGE), shell)


def test_gpudirect_goes_by_peermem_beside_the_closed_module_and_by_dma_buf_beside_the_open_one(
    guest: lone.Guest, shell: SshShell
) -> None:
    brought(book(guest.home, DRIVER), shell)
    assert brought(book(guest.home, GPUDIRECT), shell)
    seen = shell.ask({"loaded": "lsmod | grep nvidia_peermem", "note": "cat /etc/vsml/gpudirect"})
    assert seen["loaded"].ok
    assert seen["note"].text.startswith("nvidia-peermem: ")
    shell.run("sed -i 's|^license:.*|license: Dual MIT/GPL|' /usr/lib/vsml-lab/modules/nvidia")
    assert brought(book(guest.home, GPUDIRECT), shell)
    assert shell.ask({"note": "cat /etc/vsml/gpudirect"})["note"].text.startswith("DMA-BUF: kernel ")


def test_apt_says_of_a_lock_what_steps_wait_for(shell: SshShell) -> None:
    hold = "import fcntl, subprocess, sys; f = open('/var/lib/apt/lists/lock', 'w'); fcntl.lockf(f, fcntl.LOCK_EX)"
    with pytest.raises(GuestError) as raised:
        shell.run(f"python3 -c \"{hold}; sys.exit(subprocess.call(['apt-get', 'update']))\"")
    assert any("Could not get lock" in line for line in raised.value.details)
