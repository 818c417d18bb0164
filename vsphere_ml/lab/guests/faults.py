"""What goes wrong with guests, on demand."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

from vsphere_ml.core.errors import ConfigError, NotPossible
from vsphere_ml.lab.guests import hub, machine, shape

_PACKAGE = re.compile(r"[a-z0-9][a-z0-9+.-]*")
SLOW = "256kbit"


def refuse_ssh(home: Path, vm_id: str) -> None:
    """Let the guest's sshd refuse everybody, as when it is not up yet; sessions go on."""
    _in(home, vm_id, ": >/run/vsml-lab/no-sshd; pkill -x -o sshd")


def accept_ssh(home: Path, vm_id: str) -> None:
    """Let the guest's sshd answer again."""
    _in(home, vm_id, "rm -f /run/vsml-lab/no-sshd")


def cut(home: Path, vm_id: str) -> None:
    """Cut every session in the middle of what it does; sshd goes on."""
    _in(home, vm_id, "pkill -KILL -f '^sshd: .*(@|\\[priv\\])' || :")


def fill_disk(home: Path, vm_id: str) -> None:
    """Let the guest's disk be full from now on."""
    disk = _disk(home, vm_id)
    # A smaller file system costs no memory, and one that is full to the last page no time.
    used = _in_hub(home, "df", "--output=used", "-k", disk).split()[-1]
    _in_hub(home, "mount", "-o", f"remount,size={used}k", disk)


def empty_disk(home: Path, vm_id: str) -> None:
    """Give the guest's disk its room again."""
    _in_hub(home, "mount", "-o", f"remount,size={machine.DISK}", _disk(home, vm_id))


def fail_package(home: Path, vm_id: str, package: str) -> None:
    """Let a stand-in package fail to install, until `mend_package`."""
    _known(package)
    _in(home, vm_id, f"mkdir -p /var/lib/vsml-lab/fail && : >/var/lib/vsml-lab/fail/{package}")


def mend_package(home: Path, vm_id: str, package: str) -> None:
    """Let it install again."""
    _known(package)
    _in(home, vm_id, f"rm -f /var/lib/vsml-lab/fail/{package}")


def reboot(home: Path, vm_id: str) -> None:
    """Let the guest reboot by itself."""
    _in(home, vm_id, "true")  # raises when it is not there
    with suppress(NotPossible):  # the shell that says it may end with the guest
        _in(home, vm_id, "kill -USR1 1")


def change_host_key(home: Path, vm_id: str) -> None:
    """Give the guest another host key, as when somebody else took its place; it is published nowhere."""
    file = "/etc/ssh/ssh_host_ed25519_key"
    _in(home, vm_id, f"rm -f {file} {file}.pub; ssh-keygen -q -t ed25519 -N '' -C '' -f {file}; pkill -x -o sshd")


def slow(home: Path, vm_id: str) -> None:
    """Let the guest answer slowly; `shape(home, None)` ends that."""
    shape.shape(home, SLOW, (vm_id,))


def _known(package: str) -> None:
    if not _PACKAGE.fullmatch(package):
        raise ConfigError(f"`{package}` is no package", code="lab.bad-package", target=package)


def _in(home: Path, vm_id: str, command: str) -> str:
    """Run a command in the guest, as root, without its sshd."""
    pid = machine.pid(machine.folder(home, vm_id))
    if pid is None:
        raise NotPossible(f"the guest of {vm_id} does not run", code="lab.no-guests", target=vm_id)
    guest = _init(pid)
    namespaces = ["--mount", "--uts", "--ipc", "--net", "--pid"]
    return hub.run("nsenter", "--target", str(guest), *namespaces, "--root", "--wd=/", "sh", "-c", command)


def _init(pid: int) -> int:
    """Return the guest's own pid 1 by its machine's: the child of the unshare that the machine waits for."""
    for _ in range(2):
        with suppress(OSError, IndexError):
            pid = int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])
    return pid


def _disk(home: Path, vm_id: str) -> str:
    return str(home / "disks" / machine.folder(home, vm_id).name)


def _in_hub(home: Path, *command: str) -> str:
    center = hub.find(home)
    if center is None:
        raise NotPossible("no guests run in this lab", code="lab.no-guests", target=str(home))
    return hub.run("nsenter", "--target", str(center.pid), "--mount", *command)
