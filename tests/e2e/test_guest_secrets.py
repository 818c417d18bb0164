"""Secrets reach the guests and nobody else: every process, here and in guests, is watched while they are brought there.

Guests are namespaces of this machine, so its process list holds theirs.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Self

import pytest

from tests.e2e import trained
from tests.e2e.trained import ALL, SECRETS
from tests.integration.guests import needed
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.trained import Cluster

pytestmark = [pytest.mark.e2e, pytest.mark.lab, needed]


class Watch(threading.Thread):
    """Reads the words and the environment of every process, again and again."""

    def __init__(self, secrets: list[bytes]) -> None:
        super().__init__()
        self.secrets = secrets
        self.caught: set[str] = set()
        self.looks = 0
        self.names: set[str] = set()
        self._ended = threading.Event()

    def run(self) -> None:
        while not self._ended.is_set():
            for process in Path("/proc").glob("[0-9]*"):
                with suppress(OSError):
                    words = (process / "cmdline").read_bytes()
                    self.names.add(words.partition(b"\0")[0].rpartition(b"/")[2].decode(errors="replace"))
                    self._read_site(words, f"words of {words[:60]!r}")
                with suppress(OSError):
                    self._read_site((process / "environ").read_bytes(), f"environment of {process.name}")
            self.looks += 1

    def _read_site(self, seen: bytes, where: str) -> None:
        self.caught |= {where for secret in self.secrets if secret in seen}

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._ended.set()
        self.join()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with trained.cluster(tmp_path_factory.mktemp("secrets")) as made:
        made.playbooks(*ALL)
        yield made


def secrets_of(cluster: Cluster) -> list[str]:
    """Return what must not be seen: keys by a line of their middle, which has no like."""
    keys = (cluster.shell.folder / "state").rglob("id_ed25519")  # of the login and of the mesh
    return [*SECRETS.values(), *(key.read_text().splitlines()[2] for key in keys)]


def test_the_watch_sees_a_secret_in_a_process() -> None:
    with Watch([b"hunter2-canary"]) as watch:
        process = subprocess.Popen(["/bin/sh", "-c", "sleep 60; :", "hunter2-canary"], start_new_session=True)
        until(lambda: watch.caught, "it was never seen")
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def test_no_process_no_log_and_no_output_ever_holds_a_secret(cluster: Cluster) -> None:
    assert cluster.configure("--dry-run").status == 0  # by then the key of the mesh is made
    hidden = secrets_of(cluster)
    assert len(hidden) == len(SECRETS) + 2
    trace = cluster.shell.folder / "trace"
    with Watch([each.encode() for each in hidden]) as watch:
        done = cluster.configure("--verbose", "--trace", str(trace))
    assert done.status == 0, done.err
    assert watch.caught == set()
    assert watch.looks > 10
    # A watch that never saw the programs at work would prove nothing.
    assert {"apt-get", "sshd", "vsml"} & watch.names, watch.names
    paths = [file for file in (cluster.shell.folder / "state").rglob("*") if file.is_file()]
    answers = {str(file): file.read_text(errors="replace") for file in paths if file.suffix in {".log", ".json", ""}}
    answers |= {"out": done.out, "err": done.err, "trace": trace.read_text()}
    answers = {name: text for name, text in answers.items() if not name.endswith("id_ed25519")}
    assert any(name.endswith("node-1.log") for name in answers)
    assert [name for name, text in answers.items() for secret in hidden if secret in text] == []


def test_they_are_in_the_guests_where_they_belong_and_nowhere_else(cluster: Cluster) -> None:
    assert cluster.configure().status == 0
    where = "/etc /root /home /var /opt /tmp /run"
    for name, expected in (
        ("licence_token", "/etc/nvidia/ClientConfigToken/client_configuration_token_vsml.tok"),
        ("registry_key", ""),  # the stand-in for Docker keeps none
    ):
        # The word is put together in the guest, so that neither the search nor its log finds itself.
        first, last = SECRETS[name][:9], SECRETS[name][9:]
        search = f"printf '%s%s' {first} {last} >/dev/shm/word; grep -rlFsf /dev/shm/word {where}; rm /dev/shm/word"
        found = cluster.shell.vsml("run", "--sudo", "--only", "node-1", "-o", "json", "--", search)
        assert found.document["data"]["groups"][0]["out"].split() == expected.split()


def test_a_sign_in_that_fails_tells_everything_but_the_key(cluster: Cluster) -> None:
    other = "hunter2-another-key"
    (cluster.shell.folder / "registry_key").write_text(other)
    refuse = "printf '#!/bin/sh\\ncat >&2; exit 1\\n' >/usr/local/bin/docker && chmod 755 /usr/local/bin/docker"
    cluster.shell.vsml("run", "--sudo", "--only", "node-1", "--", f"[ -e /usr/bin/docker ]; {refuse}")
    refused = cluster.configure("--step", "registry_login", "-o", "json")
    cluster.shell.vsml("run", "--sudo", "--only", "node-1", "--", "rm /usr/local/bin/docker")
    (cluster.shell.folder / "registry_key").write_text(SECRETS["registry_key"])
    assert refused.status == 5
    error = refused.document["data"]["guests"][0]["error"]
    assert "registry nvcr.io" in error["message"]
    assert "docker --config /root/.docker login" in error["message"]
    assert other not in refused.out + refused.err
    logs = [each.read_text() for each in (cluster.shell.folder / "state").rglob("node-*.log")]
    assert not [each for each in logs if other in each]
