"""Real OpenSSH servers on 127.0.x.y, each with its own host key, users, sudoers and boot id.

Each runs in a mount namespace of its own, so that nothing of the machine's /etc, /run or /proc is touched; all else is
the machine's own file system. Needs root on Linux and the Debian packages openssh-server and sudo.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import uuid
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.waiting import until
from vsphere_ml.core.secret import Secret
from vsphere_ml.ssh.keys.host_keys import HostKey, read_key
from vsphere_ml.ssh.keys.key_pairs import key_pair
from vsphere_ml.ssh.keys.known_hosts import KnownHosts
from vsphere_ml.ssh.session.target import SshTarget

if TYPE_CHECKING:
    from collections.abc import Iterator

SUDO_PASSWORD = Secret("pass word$1")
_HASH = "$6$vsmltest$8jQcOs4.wYTh4OVyRB.gGkvds3jpai1RgGIXmT6anqlAa/wC6PkO5JKLPhA//Olksvr59SXNyhrH0qp4PkN9Q."
# root signs in by key; `free` has sudo without a password, `asked` with one, `barred` none; `mute` may run nothing.
USERS = {"free": "/bin/sh", "asked": "/bin/sh", "barred": "/bin/sh", "mute": "/usr/sbin/nologin"}
_INIT = """\
set -e
cd "$1"
for each in passwd shadow group sudoers; do mount --bind "$each" "/etc/$each"; done
mount --bind boot_id /proc/sys/kernel/random/boot_id
mount -t tmpfs tmpfs /run
mkdir /run/sshd /run/guest
mount --bind . /run/guest
exec "$(command -v sshd || echo /usr/sbin/sshd)" -D -e -f sshd_config
"""
# The folder as the server sees it: users other than root may not enter the one of the tests.
_INSIDE = "/run/guest"
# Plays the part of systemctl: the machine that runs the tests is not to go down.
_SYSTEMCTL = """\
#!/bin/sh
[ "$1" = reboot ] || exit 1
cat /proc/sys/kernel/random/uuid >/run/guest/boot_id
"""


def missing() -> str | None:
    """Return why such servers cannot run here; None when they can."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "needs root on Linux, for mount namespaces"
    tools = {"sshd": "openssh-server", "sudo": "sudo", "unshare": "util-linux", "ssh-keygen": "openssh-client"}
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    pending = sorted(package for tool, package in tools.items() if not shutil.which(tool, path=path))
    if pending:
        return f"needs the Debian packages {', '.join(pending)}"
    allowed = subprocess.run(["unshare", "--mount", "true"], check=False, capture_output=True)
    return None if allowed.returncode == 0 else f"needs mount namespaces: {allowed.stderr.decode().strip()}"


@dataclass(slots=True)
class Sshd:
    """One server, started and stopped at will."""

    name: str
    host: str
    port: int
    folder: Path
    key_file: Path
    process: subprocess.Popen[bytes] | None = field(default=None)

    @property
    def host_key(self) -> HostKey:
        return self._key("ed25519")

    @property
    def rsa_host_key(self) -> HostKey:
        return self._key("rsa")

    def _key(self, kind: str) -> HostKey:
        key = read_key((self.folder / f"host_key_{kind}.pub").read_text())
        assert key is not None
        return key

    def target(self, known_hosts: KnownHosts | None = None, **changes: object) -> SshTarget:
        """Return the way to it as root, its key pinned, unless something else is said."""
        if known_hosts is None:
            known_hosts = KnownHosts(self.folder / "known_hosts")
            known_hosts.pin(self.host, self.port, [self.host_key], comment="by the test")
        fields = {"key_file": self.key_file, "timeout_s": 60.0, **changes}
        return SshTarget(name=self.name, host=self.host, port=self.port, known_hosts=known_hosts, **fields)  # type: ignore[arg-type]

    def new_host_key(self) -> None:
        for kind in ("ed25519", "rsa"):
            file = self.folder / f"host_key_{kind}"
            file.unlink(missing_ok=True)
            subprocess.run(["ssh-keygen", "-q", "-t", kind, "-N", "", "-C", "", "-f", str(file)], check=True)

    def start(self) -> None:
        log = (self.folder / "sshd.log").open("ab")
        command = ["unshare", "--mount", "--propagation", "private", "sh", "-c", _INIT, "sh", str(self.folder)]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        log.close()
        until(self._listens, (self.folder / "sshd.log").read_text)

    def _listens(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, (self.folder / "sshd.log").read_text()
        with suppress(OSError), socket.create_connection((self.host, self.port), timeout=10):
            return True
        return False

    def stop(self) -> None:
        """End the server and every session."""
        if self.process is None:
            return
        self.cut()
        self.process.kill()
        self.process.wait()
        self.process = None

    def cut(self) -> None:
        """Cut every session, as a network does that fails; the server goes on."""
        assert self.process is not None
        for pid in _descendants(self.process.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@contextmanager
def running(folder: Path, count: int = 1) -> Iterator[list[Sshd]]:
    """Run servers on addresses of their own; skip the test, with the reason, where none can run."""
    if reason := missing():
        pytest.skip(f"no real OpenSSH servers: {reason}")
    key = key_pair(folder / "client", "test").private
    servers = [_prepared(folder / f"node-{i}", f"127.0.{worker()}.{10 + i}", key) for i in range(1, count + 1)]
    try:
        for server in servers:
            server.start()
        yield servers
    finally:
        for server in servers:
            server.stop()


def worker() -> int:
    """Return the number of the worker that runs this test, 0 where there are none: each has addresses of its own."""
    return int(os.environ.get("PYTEST_XDIST_WORKER", "gw-1").removeprefix("gw")) + 1


def _prepared(folder: Path, host: str, key_file: Path) -> Sshd:
    folder.mkdir()
    server = Sshd(folder.name, host, _free_port(host), folder, key_file)
    server.new_host_key()
    (folder / "authorized_keys").write_text(key_pair(key_file.parent, "test").public + "\n")
    (folder / "boot_id").write_text(f"{uuid.uuid4()}\n")
    (folder / "bin").mkdir()
    (folder / "bin" / "systemctl").write_text(_SYSTEMCTL)
    (folder / "bin" / "systemctl").chmod(0o755)
    (folder / "sshd_config").write_text(_config(server))
    _write_users(folder)
    return server


def _config(server: Sshd) -> str:
    return f"""\
ListenAddress {server.host}:{server.port}
HostKey {server.folder}/host_key_ed25519
HostKey {server.folder}/host_key_rsa
PidFile none
AuthorizedKeysFile {_INSIDE}/authorized_keys
StrictModes no
UsePAM no
PasswordAuthentication no
UseDNS no
PermitRootLogin yes
MaxSessions 100
AllowTcpForwarding yes
Subsystem sftp internal-sftp
SetEnv PATH={_INSIDE}/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin
"""


def _write_users(folder: Path) -> None:
    machine = Path("/etc/passwd").read_text().splitlines()
    # A plain shell for root: this machine's .bashrc is none of the tests' business.
    others = ["root:x:0:0::/root:/bin/sh", *(line for line in machine if not line.startswith("root:"))]
    lines = [f"{name}:x:{70001 + i}:{70001 + i}::/:{shell}" for i, (name, shell) in enumerate(USERS.items())]
    (folder / "passwd").write_text("\n".join([*others, *lines, ""]))
    groups = [f"{name}:x:{70001 + i}:" for i, name in enumerate(USERS)]
    (folder / "group").write_text("\n".join([Path("/etc/group").read_text().rstrip(), *groups, ""]))
    shadows = ["root:*:19000:0:99999:7:::", *(f"{name}:{_HASH}:19000:0:99999:7:::" for name in USERS)]
    (folder / "shadow").write_text("\n".join([*shadows, ""]))
    secure = f'Defaults secure_path="{_INSIDE}/bin:/usr/sbin:/usr/bin:/sbin:/bin"\nDefaults passwd_tries=2\n'
    (folder / "sudoers").write_text(secure + "root ALL=(ALL) ALL\nfree ALL=(ALL) NOPASSWD: ALL\nasked ALL=(ALL) ALL\n")
    (folder / "sudoers").chmod(0o440)
    (folder / "shadow").chmod(0o600)


def _free_port(host: str) -> int:
    with socket.socket() as probe:
        probe.bind((host, 0))
        port: int = probe.getsockname()[1]
    return port


def _descendants(pid: int) -> list[int]:
    """Return the processes below one, the nearest first."""
    found = []
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        found.append(int(child))
        with suppress(OSError):
            found += _descendants(int(child))
    return found
