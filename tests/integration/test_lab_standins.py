"""The shipped playbooks on a lab guest: real apt, real files, stand-ins where hardware would be."""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.fakes.converging import check, converge
from tests.integration import lone
from tests.integration.guests import needed
from tests.integration.lone import DRIVER, NAME
from vsphere_ml.core.diagnostics import Severity
from vsphere_ml.core.model.device_kinds import NicKind
from vsphere_ml.core.model.guest import GuestFacts, Peer
from vsphere_ml.core.secret import Secret
from vsphere_ml.guest.facts import wanted
from vsphere_ml.guest.facts.verify import verify
from vsphere_ml.guest.playbooks import playbook
from vsphere_ml.lab.guests.boot.firstboot import LabGpu

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.integration.lone import Guest
    from vsphere_ml.core.model.guest import Playbook
    from vsphere_ml.ssh.session.shell import SshShell

pytestmark = [pytest.mark.lab, needed]
REPOSITORY = "file:/opt/vsml-lab"
ADDRESS = "10.202.7.11"


@pytest.fixture(scope="module")
def guest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guest]:
    folder = tmp_path_factory.mktemp("standins") / "guests"
    with lone.guest(folder, ADDRESS, (LabGpu(profile="grid_a100-40c"),) * 2, nvlinks=12) as running:
        yield running


@pytest.fixture
def shell(guest: Guest) -> Iterator[SshShell]:
    with guest.enter() as opened:
        yield opened


FACTS = GuestFacts(
    name=NAME,
    cluster="train",
    peers=(Peer(name=NAME, address=ADDRESS, roce_address="172.20.0.1", slots=2),),
    gpus=2,
    profile="grid_a100-40c",
    linked=True,
    nic=NicKind.PASSTHROUGH,
    vgpu_manager=DRIVER,
    lab=True,
    secrets={"licence_token": Secret("token"), "registry_key": Secret("key")},
)


def shipped(home: Path, name: str) -> Playbook:
    (driver,) = (home / "packages").glob("nvidia-linux-grid-*.deb")
    values = {
        "doca_url": REPOSITORY,
        "doca_trusted": "true",
        "cuda_url": REPOSITORY,
        "cuda_suite": "./",
        "cuda_trusted": "true",
        "toolkit_url": REPOSITORY,
        "toolkit_suite": "./",
        "toolkit_key": "",
        "toolkit_trusted": "true",
        "driver_file": str(driver),
        "image": "nvcr.io/nvidia/tensorflow:23.05-tf2-py3",
    }
    return playbook.load(playbook.find(name, home), values=values)


# In the order of a cluster's file: OFED before the driver, the driver before the container.
@pytest.mark.parametrize("name", ["base", "roce", "driver", "container", "monitoring"])
def test_a_playbook_converges_and_then_lacks_nothing(guest: Guest, shell: SshShell, name: str) -> None:
    wanted = shipped(guest.home, name)
    assert converge(wanted, shell, FACTS, list[object]().append).changed
    assert check(wanted, shell, FACTS).pending == ()


def test_a_container_has_its_volumes_once_docker_run_returns(shell: SshShell) -> None:
    volumes = " ".join(f"--volume=/var/tmp/from-{each}:/mnt/to-{each}" for each in range(40))
    run = f"docker run -d --name=many {volumes} nvcr.io/nvidia/tensorflow:23.05-tf2-py3 sleep 60"
    last = "docker exec many mountpoint -q /mnt/to-39"
    answers = shell.ask({"begun": f"{run} && {last}", "again": f"docker restart many && {last}"})
    assert (answers["begun"].ok, answers["again"].ok) == (True, True)
    shell.run("docker rm -f many")


def test_it_is_all_there_after_a_reboot(guest: Guest, shell: SshShell) -> None:
    shell.reboot(30.0)
    for name in ("base", "roce", "driver", "monitoring"):
        assert check(shipped(guest.home, name), shell, FACTS).pending == ()


def test_verify_says_lab_with_every_fact(guest: Guest, shell: SshShell) -> None:
    evidence = {
        each.fact: each for each in verify(shell, FACTS, wanted.wanted_by_playbooks([shipped(guest.home, "container")]))
    }
    assert all(each.lab and each.message.startswith("lab: ") for each in evidence.values())
    right = {name for name, each in evidence.items() if each.severity is Severity.OK}
    assert right >= {"GPUs and profile", "driver branch", "licence", "NVLink", "GPU and NIC distance", "RDMA device"}
    assert evidence["ATS"].severity is Severity.WARNING  # nobody has enabled it in this lab


def test_stand_ins_say_so_and_stay_in_the_guest(shell: SshShell) -> None:
    answers = shell.ask({"ofed": "ofed_info -s", "gpus": "nvidia-smi -L", "package": "dpkg -s doca-ofed"})
    for text in (answers["ofed"].err, answers["gpus"].err, answers["package"].out):
        assert {"stand-in", "vsml", "lab"} <= set(re.findall(r"[\w-]+", text))
    assert shutil.which("ofed_info") is None
