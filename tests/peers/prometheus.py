"""Debian's Prometheus, out of its package: an installed one would run as a service of the machine."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import tempfile
import urllib.parse
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.waiting import until
from vsphere_ml.lab import folders

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True)
class Prometheus:
    """A Prometheus that runs, at a port of the loopback interface."""

    port: int

    def query(self, expression: str) -> list[dict[str, Any]]:
        """Return the labels and the newest value of each time series; none while it does not answer."""
        words = urllib.parse.urlencode({"query": expression})
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/api/v1/query?{words}", timeout=10) as answer:
                result: list[dict[str, Any]] = json.load(answer)["data"]["result"]
        except OSError:
            return []
        return result


@contextmanager
def running(folder: Path, config: str) -> Iterator[Prometheus]:
    """Run one with this configuration, and its data in the folder."""
    (folder / "prometheus.yml").write_text(config)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    options = {"config.file": "prometheus.yml", "storage.tsdb.path": "data", "web.listen-address": f"127.0.0.1:{port}"}
    command = [str(program()), *(f"--{name}={value}" for name, value in options.items())]
    with (folder / "log").open("wb") as log, subprocess.Popen(command, cwd=folder, stdout=log, stderr=log) as process:
        try:
            made = Prometheus(port)
            until(lambda: made.query("vector(1)"), f"Prometheus does not answer, see {folder / 'log'}")
            yield made
        finally:
            process.terminate()


def program() -> Path:
    """Return the program, downloaded first where it is not there. The machine's own lists of packages may be old."""
    home = folders.cache() / "peers-prometheus"
    with folders.hold_lock(home.with_suffix(".lock")):
        if not home.exists():
            with tempfile.TemporaryDirectory() as scratch:
                _unpack(Path(scratch))
                shutil.move(Path(scratch) / "root", home)
    return home / "usr" / "bin" / "prometheus"


def _unpack(scratch: Path) -> None:
    (scratch / "lists" / "partial").mkdir(parents=True)
    apt = ["apt-get", "-qq", "-o", f"Dir::State::lists={scratch / 'lists'}", "-o", "APT::Sandbox::User=root"]
    subprocess.run([*apt, "update"], check=True)
    subprocess.run([*apt, "download", "prometheus"], cwd=scratch, check=True)
    (package,) = scratch.glob("prometheus_*.deb")
    subprocess.run(["dpkg-deb", "--extract", package, scratch / "root"], check=True)
