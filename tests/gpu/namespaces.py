"""Nodes that are network namespaces of this machine, joined by a cable of a rate, behind the `Guests` port.

They have an interface, a host name, a boot id and a /var/tmp of their own, and share the machine's GPUs: NCCL tells
machines apart by host name and boot id, and so takes the network between two of them. `ssh` in them is a script that
enters the other namespace: what is tried is what ranks do and what is made of it, and not how they are reached.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from vsphere_ml.core.errors import GuestError, VsmlError
from vsphere_ml.core.model.guest import CommandAnswer
from vsphere_ml.core.secret import Secret

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from vsphere_ml.core.model.guest import Shell
    from vsphere_ml.core.ports.vcenter import GuestPlace

T = TypeVar("T")
PROGRAMS = ("ip", "tc", "nsenter", "unshare", "mount", "runuser", "setsid")
SSH = Path("/usr/bin/ssh")  # which vsml's own `ssh` calls
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
STARTED_S = 10.0
# Options with a value, options without, the host, the command.
_SSH = """\
#!/bin/sh
while [ $# -gt 0 ]; do
    case $1 in
    -o | -p) shift 2 ;;
    -*) shift ;;
    *) break ;;
    esac
done
pid=$(cat {folder}/"$1") || exit 255
shift
exec nsenter -t "$pid" -n -u -m -- env -i HOME=/root PATH={path} sh -c "$*"
"""
# What is a node's own: /sys shows the interfaces of the namespace that it is mounted in.
_OWN = """\
hostname {name}
mount -t sysfs none /sys
mount -t tmpfs none /var/tmp
cat /proc/sys/kernel/random/uuid >/var/tmp/boot_id
mount --bind /var/tmp/boot_id /proc/sys/kernel/random/boot_id
mount --bind {ssh} {at}
mount --bind {hosts} /etc/hosts
echo made
exec sleep infinity
"""


@dataclass(frozen=True, slots=True)
class Namespace:
    """One node: the `Shell` port over `nsenter`."""

    name: str
    holder: subprocess.Popen[bytes]

    def ask(self, commands: Mapping[str, str]) -> Mapping[str, CommandAnswer]:
        return {name: self._execute(command) for name, command in commands.items()}

    def run(
        self, command: str, *, stdin: Secret | str | None = None, timeout_s: float = 1800.0, as_root: bool = True
    ) -> CommandAnswer:
        assert as_root, "there is no other user"
        answer = self._execute(command, stdin, timeout_s)
        if not answer.ok:
            raise GuestError(
                f"{self.name}: a command ended with status {answer.status}",
                code="guest.command-failed",
                target=self.name,
                details=tuple((answer.out + answer.err).splitlines()[-20:]),
            )
        return answer

    def write(self, path: str, text: Secret | str, *, mode: int = 0o644, owner: str = "root:root") -> None:
        whole = f"mkdir -p $(dirname {path}) && cat >{path} && chmod {mode:o} {path} && chown {owner} {path}"
        self.run(whole, stdin=text)

    def put(self, local: Path, path: str, *, mode: int = 0o644) -> None:
        self.write(path, local.read_text(encoding="utf-8"), mode=mode)

    def get(self, path: str, local: Path) -> None:
        local.write_text(self.run(f"cat {path}").out, encoding="utf-8")

    def reboot(self, deadline_s: float = 900.0) -> None:
        raise NotImplementedError(deadline_s)

    def _execute(
        self, command: str, stdin: Secret | str | None = None, timeout_s: float | None = None
    ) -> CommandAnswer:
        text = stdin.reveal() if isinstance(stdin, Secret) else stdin or ""
        done = subprocess.run(
            ["nsenter", "-t", str(self.holder.pid), "-n", "-u", "-m", "--", "sh", "-c", command],
            input=text,
            env={"HOME": "/root", "PATH": f"{os.environ['PATH']}:{PATH}"},
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=timeout_s,
        )
        return CommandAnswer(done.returncode, done.stdout, done.stderr)


@dataclass(frozen=True, slots=True)
class Namespaces:
    """The nodes by name, as the `Guests` port has them."""

    there: Mapping[str, Namespace]

    def vouched(self, place: GuestPlace) -> tuple[str, ...]:
        return (f"ssh-ed25519 KEY-OF-{place.name}",)

    def reach(self, places: Sequence[GuestPlace], _deadline_s: float) -> Mapping[str, VsmlError]:
        return {place.name: _missing(place.name) for place in places if place.name not in self.there}

    def each(
        self,
        places: Sequence[GuestPlace],
        work: Callable[[Shell], T],
        ended: Callable[[str, T | VsmlError], None] = lambda _name, _outcome: None,
    ) -> Mapping[str, T | VsmlError]:
        def one(place: GuestPlace) -> T | VsmlError:
            try:
                outcome: T | VsmlError = work(self.there[place.name])
            except VsmlError as error:
                outcome = error
            ended(place.name, outcome)
            return outcome

        with ThreadPoolExecutor(max(1, len(places))) as pool:
            return dict(zip([place.name for place in places], pool.map(one, places), strict=True))

    def log(self, name: str) -> str:
        return f"/logs/{name}.log"

    def close(self) -> None:
        for each in self.there.values():
            each.holder.send_signal(signal.SIGKILL)
            each.holder.wait()


def _missing(name: str) -> GuestError:
    return GuestError(f"{name} cannot be reached", code="guest.unreachable", target=name)


def missing_program() -> str:
    """Return a program that nodes cannot be made without and that this machine lacks; empty when it has all."""
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    return next(iter(missing), "" if SSH.exists() else str(SSH))


def join(addresses: Mapping[str, str], folder: Path, mbit: int) -> Namespaces:
    """Return two nodes by name, each with its address on its eth0, the end of a cable of so many Mbit/s."""
    ssh = folder / "ssh"
    ssh.write_text(_SSH.format(folder=folder, path=PATH))
    ssh.chmod(0o755)
    lines = ["127.0.0.1 localhost", *(f"{address} {name}" for name, address in addresses.items())]
    (folder / "hosts").write_text("\n".join(lines) + "\n")
    nodes = {name: Namespace(name, _hold(name, ssh)) for name in addresses}
    made = Namespaces(nodes)
    try:
        _lay_cable(nodes, addresses, mbit)
    except BaseException:
        made.close()
        raise
    for name, address in addresses.items():
        (folder / address).write_text(str(nodes[name].holder.pid))
    return made


def _hold(name: str, ssh: Path) -> subprocess.Popen[bytes]:
    """Return the process that keeps a node's namespaces, once they are there."""
    own = _OWN.format(name=name, ssh=ssh, at=SSH, hosts=ssh.with_name("hosts"))
    command = ["unshare", "--net", "--uts", "--mount", "sh", "-ec", own]
    holder = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
    assert holder.stdout is not None
    line = holder.stdout.readline()
    holder.stdout.close()
    assert line == b"made\n", f"{name}: its namespaces could not be made"
    return holder


def _lay_cable(nodes: Mapping[str, Namespace], addresses: Mapping[str, str], mbit: int) -> None:
    first, second = nodes.values()
    ends = f"netns {first.holder.pid} type veth peer name eth0 netns {second.holder.pid}"
    subprocess.run(["ip", "link", "add", "eth0", *ends.split()], check=True)
    for name, address in addresses.items():
        nodes[name].run(
            textwrap.dedent(f"""\
                set -e
                ip link set lo up
                ip address add {address}/24 dev eth0
                ip link set eth0 up
                tc qdisc add dev eth0 root tbf rate {mbit}mbit burst 256kb latency 50ms
            """)
        )
    until = time.monotonic() + STARTED_S
    while not all("state UP" in each.run("ip link show eth0").out for each in nodes.values()):
        assert time.monotonic() < until, "the cable does not come up"
        time.sleep(0.1)
