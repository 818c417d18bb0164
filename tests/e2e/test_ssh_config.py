"""Programs that know nothing of vsml enter nodes by `vsml ssh-config`: OpenSSH's own, rsync, and what editors need."""

from __future__ import annotations

import re
import socket
import subprocess
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from typing import TYPE_CHECKING

import pytest

from tests.e2e import trained
from tests.e2e.conftest import DEADLINE_S
from tests.integration import control
from tests.integration.guests import needed
from tests.peers import debian
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.e2e.trained import Cluster

pytestmark = [pytest.mark.e2e, pytest.mark.lab, needed]
NOTEBOOK = 8888  # the port that Jupyter listens on, on the node's loopback alone
SERVER = f"cd ~/.served; nohup python3 -m http.server --bind 127.0.0.1 {NOTEBOOK} >/dev/null 2>&1 &"
LIBRARIES = "usr/lib/*/lib*.so*"


@dataclass(frozen=True)
class Ssh:
    """OpenSSH's clients with what `vsml ssh-config` printed, and nothing else."""

    folder: Path
    config: Path

    def run(self, program: str, *words: str, given: str = "") -> str:
        done = subprocess.run(
            [program, "-F", str(self.config), *words],
            cwd=self.folder,
            input=given,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    @contextmanager
    def forwarding(self, *words: str, given: str = "") -> Iterator[None]:
        """Hold a connection open."""
        command = ["ssh", "-F", str(self.config), "-o", "ExitOnForwardFailure=yes", *words]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
            try:
                assert process.stdin is not None
                process.stdin.write(given)
                process.stdin.flush()
                yield
            finally:
                # Before 9.6 OpenSSH's client sleeps on where SIGTERM comes between its look at the flag and its poll
                # (openssh-portable a612b93de).
                process.kill()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with trained.cluster(tmp_path_factory.mktemp("ssh-config")) as made:
        yield made


@pytest.fixture(scope="module")
def ssh(cluster: Cluster) -> Ssh:
    """Return clients whose nodes were entered once, so that their addresses and host keys are known."""
    folder = cluster.shell.folder
    assert cluster.shell.here("run", "--", "true").status == 0
    made = cluster.shell.here("ssh-config")
    assert made.status == 0, made.err
    (folder / "train.conf").write_text(made.out)
    return Ssh(folder, folder / "train.conf")


@pytest.fixture(scope="module")
def notebook(ssh: Ssh) -> str:
    """Serve a page on a node's loopback interface, as Jupyter does; return the node."""
    ssh.run("ssh", "node-1", "mkdir -p ~/.served && echo served >~/.served/page")
    ssh.run("ssh", "node-1", SERVER)
    return "node-1"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_a_node_answers_by_both_of_its_names_and_vcenter_is_not_asked(cluster: Cluster, ssh: Ssh) -> None:
    before = control.ask(cluster.lab, "GET", "calls")
    assert cluster.shell.here("ssh-config").out == ssh.config.read_text()
    assert [ssh.run("ssh", name, "hostname").strip() for name in ("node-1", "node-2.train")] == ["node-1", "node-2"]
    assert control.ask(cluster.lab, "GET", "calls") == before


def test_another_host_key_is_refused(ssh: Ssh, tmp_path: Path) -> None:
    (tmp_path / "nobody").touch()
    text = re.sub("UserKnownHostsFile .*", f"UserKnownHostsFile {tmp_path / 'nobody'}", ssh.config.read_text())
    (tmp_path / "wrong.conf").write_text(text)
    command = ["ssh", "-F", str(tmp_path / "wrong.conf"), "node-1", "true"]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 255
    assert ssh.run("ssh", "node-1", "true") == ""


def test_scp_and_sftp_copy_both_ways(ssh: Ssh) -> None:
    (ssh.folder / "data").write_text("a sample")
    ssh.run("scp", "data", "node-1:data")
    ssh.run("scp", "node-1:data", "back")
    assert (ssh.folder / "back").read_text() == "a sample"
    ssh.run("sftp", "-b", "-", "node-1", given="put data again\nget again fetched\nrm again\n")
    assert (ssh.folder / "fetched").read_text() == "a sample"


def test_rsync_copies_a_folder_both_ways(ssh: Ssh) -> None:
    home = debian.rsync()
    libraries = sorted({each.parent for each in home.glob(LIBRARIES)})
    ssh.run("ssh", "node-1", "mkdir -p rsync")
    ssh.run("scp", str(home / "usr/bin/rsync"), *map(str, home.glob(LIBRARIES)), "node-1:rsync/")
    (ssh.folder / "set" / "train").mkdir(parents=True)
    (ssh.folder / "set" / "train" / "one").write_text("1")
    command = [str(home / "usr/bin/rsync"), "-a", "--rsync-path=LD_LIBRARY_PATH=rsync rsync/rsync"]
    command += ["-e", f"ssh -F {ssh.config}"]
    for paths in (("set/", "node-1:set/"), ("node-1:set/", "mirror/")):
        done = subprocess.run(
            [*command, *paths],
            cwd=ssh.folder,
            env={"LD_LIBRARY_PATH": ":".join(map(str, libraries)), "PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    assert (ssh.folder / "mirror" / "train" / "one").read_text() == "1"


def test_a_notebook_on_a_nodes_loopback_is_reached_by_a_forwarded_port(ssh: Ssh, notebook: str) -> None:
    port = free_port()
    with ssh.forwarding("-N", "-L", f"127.0.0.1:{port}:127.0.0.1:{NOTEBOOK}", notebook):
        until(lambda: listens(port), "the port is not forwarded")
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/page", timeout=60) as answer:
            assert answer.read() == b"served\n"


def test_a_shell_that_reads_a_script_forwards_ports_as_they_are_asked_for(ssh: Ssh, notebook: str) -> None:
    """VS Code's way: one `ssh -T -D`, a script on its standard input, and SOCKS to the server that it started."""
    port = free_port()
    with ssh.forwarding("-T", "-D", f"127.0.0.1:{port}", notebook, "sh", given="sleep 600\n"):
        until(lambda: listens(port), "SOCKS does not answer")
        with socket.create_connection(("127.0.0.1", port), timeout=60) as client:
            client.sendall(b"\x05\x01\x00")
            assert client.recv(2) == b"\x05\x00"
            client.sendall(b"\x05\x01\x00\x01\x7f\x00\x00\x01" + NOTEBOOK.to_bytes(2, "big"))
            assert client.recv(10)[:2] == b"\x05\x00"
            http = HTTPConnection("node", NOTEBOOK)
            http.sock = client
            http.request("GET", "/page")
            assert http.getresponse().read() == b"served\n"
