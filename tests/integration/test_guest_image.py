"""What lab guests are made of: an image of their own, in which nothing of the machine shows."""

from __future__ import annotations

import os
import subprocess
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from tests.integration import guests
from tests.integration.guests import Site, running
from vsphere_ml.core.errors import ConfigError, GuestError, NotPossible
from vsphere_ml.lab import state
from vsphere_ml.lab.guests import image

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.lab, guests.needed]
# Of the machine and not of a cloud image: what Horovod is built with, and what the image is made with.
MACHINES = ("g++", "make", "cmake", "mmdebstrap")
NAME = "vsml-test-of-guests"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with running(tmp_path_factory.mktemp("image")) as started:
        yield started


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Return a package that brings one file."""
    root = tmp_path / "package"
    (root / "DEBIAN").mkdir(parents=True)
    (root / "usr/share" / NAME).mkdir(parents=True)
    (root / "usr/share" / NAME / "file").write_text("of the machine\n")
    control = f"Package: {NAME}\nVersion: 1\nArchitecture: all\nMaintainer: nobody\nDescription: for a test\n"
    (root / "DEBIAN/control").write_text(control)
    subprocess.run(["dpkg-deb", "--build", root, tmp_path / "it.deb"], check=True, capture_output=True)
    return tmp_path / "it.deb"


@contextmanager
def installed_and_removed(package: Path) -> Iterator[list[int]]:
    """Install a package on this machine and remove it again, over and over; count the rounds."""
    rounds, over = [0], threading.Event()

    def work() -> None:
        while not over.is_set():
            for words in (["-i", str(package)], ["-P", NAME]):
                subprocess.run(
                    ["flock", "/var/lib/dpkg/lock-frontend", "dpkg", *words], check=True, capture_output=True
                )
            rounds[0] += 1

    worker = threading.Thread(target=work)
    worker.start()
    try:
        yield rounds
    finally:
        over.set()
        worker.join()


def names_of(answers: Any) -> dict[str, bool]:
    return {name: answer.ok for name, answer in answers.items()}


def test_packages_that_come_and_go_on_the_machine_change_nothing_in_guests(site: Site, package: Path) -> None:
    with installed_and_removed(package) as rounds:
        before = rounds[0]
        vms = [site.answering(site.vm(f"busy-{number}")) for number in (1, 2)]
        for vm in vms:
            with site.shell(vm) as shell:
                shell.run("apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q iperf3")
                seen = shell.ask(
                    {"file": f"test -e /usr/share/{NAME}", "known": f"dpkg -s {NAME}", "own": "dpkg -s iperf3"}
                )
            assert names_of(seen) == {"file": False, "known": False, "own": True}
        assert rounds[0] > before  # it did happen meanwhile
    for vm in vms:
        site.remove(vm)


def test_a_guest_has_what_a_cloud_image_has_and_lacks_what_it_lacks(site: Site) -> None:
    vm = site.answering(site.vm("plain"))
    with site.shell(vm) as shell:
        found = names_of(shell.ask({name: f"command -v {name}" for name in ("python3", "sudo", "apt-get", *MACHINES)}))
        headers = shell.ask({"headers": "ls /usr/src/linux-headers-* /usr/include/stdio.h"})["headers"]
    assert found == {"python3": True, "sudo": True, "apt-get": True, **dict.fromkeys(MACHINES, False)}
    assert not headers.ok
    site.remove(vm)


def test_a_minimal_server_has_no_python_and_its_sudo_wants_a_terminal(tmp_path: Path) -> None:
    topology = tmp_path / "minimal.toml"
    text = (state.TOPOLOGIES / "quad-8.0u3.toml").read_text()
    name = 'name = "ubuntu-22.04-gpu"\n'
    assert text.count(name) == 1
    topology.write_text(text.replace(name, f'{name}image = "minimal"\n'))
    with running(tmp_path / "lab", str(topology)) as site:
        vm = site.answering(site.vm("old"))
        with pytest.raises(GuestError) as refused, site.shell(vm) as shell:
            shell.ask({"who": "id -u"})
        assert refused.value.code == "guest.sudo"
        assert any("tty" in each for each in refused.value.details)
        root = image.root_of(site.home, "minimal")
        assert not (root / "usr/bin/python3").exists()
        assert (root / "usr/sbin/sshd").exists()


def test_what_a_bootstrap_mounted_goes_with_it_where_it_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bootstrap = tmp_path / "bin/mmdebstrap"
    bootstrap.parent.mkdir()
    monkeypatch.setenv("VSML_CACHE_DIR", str(tmp_path))
    root = image.home() / image.ROOT
    bootstrap.write_text(f"#!/bin/sh\nmkdir -p {root}/proc && mount -t tmpfs cut {root}/proc && kill -9 $$\n")
    bootstrap.chmod(0o755)
    monkeypatch.setenv("PATH", f"{bootstrap.parent}:{os.environ['PATH']}")
    with pytest.raises(NotPossible) as refused:
        image.make_image()
    assert refused.value.code == "lab.build-failed"
    assert (root / "proc").is_dir()
    assert not (root / "proc").is_mount()


def test_an_image_that_there_is_not_is_refused(tmp_path: Path) -> None:
    topology = tmp_path / "odd.toml"
    topology.write_text('[[template]]\nname = "t"\nimage = "windows"\n')
    with pytest.raises(ConfigError) as refused:
        image.for_topology(topology)
    assert refused.value.code == "lab.topology-invalid"
    assert "cloud, minimal" in refused.value.hint
