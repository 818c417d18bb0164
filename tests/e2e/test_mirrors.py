"""Guests without a way to the internet: what they download comes through the cluster's proxy, or from a mirror."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import threading
from email.utils import formatdate
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import pytest

from tests.e2e import trained
from tests.integration.guests import needed
from vsphere_ml.lab.guests import hub

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.e2e.trained import Cluster

pytestmark = [pytest.mark.e2e, pytest.mark.lab, needed]

SOURCES = """\
deb [trusted=yes] http://de.archive.ubuntu.com/ubuntu jammy main
# deb http://archive.ubuntu.com/ubuntu jammy-proposed main
deb [trusted=yes] http://security.ubuntu.com/ubuntu/ jammy main
"""
PLAYBOOK = """\
about = "What is downloaded."

[[step]]
kind = "file"
path = "/etc/apt/sources.list.d/ubuntu.list"
text = '''
{sources}'''

[[step]]
kind = "packages"
names = ["pciutils", "curl"]
only_from = "ubuntu"

[[step]]
kind = "nvidia_driver"
source = "http://files.example.com/{driver}"
sha256 = "{sha256}"
"""
MIRRORED = PLAYBOOK.partition("[[step]]")[0] + (
    '[[step]]\nkind = "apt_mirror"\nurl = "http://mirror.example.com/ubuntu"\n\n'
    '[[step]]\nkind = "packages"\nnames = ["numactl"]\nonly_from = "ubuntu"\n'
)


class Proxy(ThreadingHTTPServer):
    """A forward proxy behind which every host has the same files; it notes what it was asked for."""

    def __init__(self, address: str, folder: Path) -> None:
        self.folder = folder
        self.asked: list[str] = []
        super().__init__((address, 0), _Door)


class _Door(SimpleHTTPRequestHandler):
    server: Proxy

    def translate_path(self, path: str) -> str:
        self.server.asked.append(path)
        return str(self.server.folder) + unquote(urlsplit(path).path)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        """Say nothing."""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with trained.cluster(tmp_path) as made:
        yield made


@pytest.fixture
def proxy(cluster: Cluster, tmp_path: Path) -> Iterator[Proxy]:
    center = hub.find(cluster.home)
    assert center is not None
    server = Proxy(str(center.operator), _archive(tmp_path / "archive", cluster.home / "packages"))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def _archive(folder: Path, packages: Path) -> Path:
    """Lay out the lab's packages as a distribution's archive has them."""
    architecture = subprocess.check_output(["/usr/bin/dpkg", "--print-architecture"], text=True).strip()
    suite = folder / "ubuntu" / "dists" / "jammy"
    index = f"main/binary-{architecture}/Packages"
    (suite / index).parent.mkdir(parents=True)
    for package in packages.glob("*.deb"):
        shutil.copy(package, folder / "ubuntu")
        shutil.copy(package, folder)
    text = (packages / "Packages").read_bytes()
    (suite / index).write_bytes(text)
    digest = hashlib.sha256(text).hexdigest()
    head = f"Suite: jammy\nDate: {formatdate(usegmt=True)}\nComponents: main\n"
    (suite / "Release").write_text(f"{head}SHA256:\n {digest} {len(text)} {index}\n")
    return folder


def test_downloads_go_by_the_proxy_and_to_the_mirror(cluster: Cluster, proxy: Proxy) -> None:
    driver = next(proxy.folder.glob("nvidia-linux-grid-*.deb"))
    text = PLAYBOOK.format(sources=SOURCES, driver=driver.name, sha256=hashlib.sha256(driver.read_bytes()).hexdigest())
    cluster.shell.write("mine.toml", text)
    access = f"http://{proxy.server_address[0]!s}:{proxy.server_port}"
    cluster.playbooks("./mine.toml", proxy=access)
    done = cluster.configure()
    assert done.status == 0, done.err
    hosts = {urlsplit(each).hostname for each in proxy.asked}
    assert hosts == {"de.archive.ubuntu.com", "security.ubuntu.com", "files.example.com"}

    cluster.shell.write("mirrored.toml", MIRRORED)
    cluster.playbooks("./mirrored.toml", proxy=access)
    proxy.asked.clear()
    done = cluster.configure()
    assert done.status == 0, done.err
    assert {urlsplit(each).hostname for each in proxy.asked} == {"mirror.example.com"}
    assert cluster.configure().did_nothing
    sources = cluster.shell.vsml("run", "--only", "node-1", "--", "cat /etc/apt/sources.list.d/ubuntu.list")
    assert "# deb http://archive.ubuntu.com/ubuntu jammy-proposed main\n" in sources.out, "a comment stays as it is"


def test_a_download_that_is_not_the_file_that_was_meant_is_refused(cluster: Cluster, proxy: Proxy) -> None:
    driver = next(proxy.folder.glob("nvidia-linux-grid-*.deb"))
    cluster.shell.write("mine.toml", PLAYBOOK.format(sources=SOURCES, driver=driver.name, sha256="0" * 64))
    cluster.playbooks("./mine.toml", proxy=f"http://{proxy.server_address[0]!s}:{proxy.server_port}")
    refused = cluster.configure()
    assert refused.status == 5
    assert "sha256sum" in refused.err
    left = cluster.shell.vsml("run", "--", f"test ! -e /var/cache/vsml/{driver.name} && ! command -v nvidia-smi")
    assert left.status == 0, left.out
