"""Debian's Prometheus, out of its package: an installed one would run as a service of the machine."""

from __future__ import annotations

import json
import socket
import subprocess
import urllib.parse
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.peers import debian
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


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
    return debian.unpacked("prometheus") / "usr" / "bin" / "prometheus"
