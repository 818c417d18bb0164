"""What goes wrong with guests, on demand."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from shlex import quote

from vsphere_ml.core.errors import ConfigError, NotPossible
from vsphere_ml.core.nearest import nearest_name
from vsphere_ml.lab.guests import hub, machine

_PACKAGE = re.compile(r"[a-z0-9][a-z0-9+.-]*")
_ON_INSTALL = "/var/lib/vsml-lab/on-install"
_KEY = "/etc/ssh/ssh_host_ed25519_key"
_CUT = "pkill -KILL -f '^sshd: .*(@|\\[priv\\])' || :"
_LISTENER = "-f '[s]shd -D -e'"  # sessions have other titles
_LISTENS = "grep -q ':0016 .* 0A ' /proc/net/tcp /proc/net/tcp6"
_CLOSED = f"while {_LISTENS}; do pkill {_LISTENER}; sleep 0.02; done"
# Back with another listener in place of the old one, unless none is to be.
_ANEW = f"""\
old=$(pgrep -o {_LISTENER}); pkill {_LISTENER}
until [ -e /run/vsml-lab/{machine.NO_SSHD} ] || {{ [ "$(pgrep -o {_LISTENER})" != "$old" ] && {_LISTENS}; }}; do
    sleep 0.02
done
"""
_SLOW = f"/run/vsml-lab/{machine.SLOW}"
# It ends with everybody awake, also when it is ended in the middle. The lab's own commands are left alone: nsenter
# stops itself when the one that it waits for is stopped (util-linux 2.38).
# Not sshd's process before sign-in: a wait that is stopped goes on by restart_syscall, which its seccomp filter answers
# with SIGSYS (OpenSSH 9.2), so that the connection would break and not be slow.
_STUTTER = f"""\
while [ -e {_SLOW} ]; do
    kill -s STOP $(pgrep -v -f 'vsml-lab|^sshd: .*\\[net\\]|^sshd-auth') 2>/dev/null
    sleep 0.15
    kill -s CONT -- -1
    sleep 0.05
done
"""


def refuse_ssh(home: Path, vm_id: str) -> None:
    """Let the guest's sshd refuse everybody, as when it is not up yet; sessions go on."""
    run_in_guest(home, vm_id, f": >/run/vsml-lab/{machine.NO_SSHD}; {_CLOSED}")


def accept_ssh(home: Path, vm_id: str) -> None:
    """Let the guest's sshd answer again."""
    run_in_guest(home, vm_id, f"rm -f /run/vsml-lab/{machine.NO_SSHD}")


def cut(home: Path, vm_id: str) -> None:
    """Cut every session in the middle of what it does; sshd goes on."""
    run_in_guest(home, vm_id, _CUT)


def cut_at_package(home: Path, vm_id: str, package: str) -> None:
    """Cut every session once, when a stand-in package is being installed."""
    _at_install(home, vm_id, package, f"rm -f $fault; {_CUT}; sleep 1")


def fill_disk(home: Path, vm_id: str) -> None:
    """Let the guest's disk be full from now on."""
    disk = _disk(home, vm_id)
    # A smaller file system costs no memory, and one that is full to the last page no time.
    shrink = f'mount -o "remount,size=$(df --output=used -k {quote(disk)} | tail -n 1 | tr -d " ")k" {quote(disk)}'
    # The guest may write between the question and the answer's use; the kernel refuses a size below what is used.
    _in_hub(home, "sh", "-c", f"for each in 1 2 3 4 5 6 7 8 9; do {shrink} 2>/dev/null && exit; done; {shrink}")


def empty_disk(home: Path, vm_id: str) -> None:
    """Give the guest's disk its room again."""
    _in_hub(home, "mount", "-o", f"remount,size={machine.DISK}", _disk(home, vm_id))


def fail_package(home: Path, vm_id: str, package: str) -> None:
    """Let a stand-in package fail to install, until `mend_package`."""
    _at_install(home, vm_id, package, f'echo "{package}: fails on demand of the vsml lab" >&2; exit 1')


def repair_package(home: Path, vm_id: str, package: str) -> None:
    """Let it install again, and nothing be cut meanwhile."""
    _check_package(package)
    run_in_guest(home, vm_id, f"rm -f {_ON_INSTALL}/{package}")


def reboot(home: Path, vm_id: str) -> None:
    """Let the guest reboot by itself."""
    run_in_guest(home, vm_id, "true")  # raises when it is not there
    with suppress(NotPossible):  # the shell that says it may end with the guest
        run_in_guest(home, vm_id, "kill -USR1 1")


def change_host_key(home: Path, vm_id: str) -> None:
    """Give the guest another host key, as when somebody else took its place; it is published nowhere."""
    new = f"ssh-keygen -q -t ed25519 -N '' -C '' -f {_KEY}"
    keep = f"[ -e {_KEY}.own ] || {{ mv {_KEY} {_KEY}.own; mv {_KEY}.pub {_KEY}.pub.own; }}"
    run_in_guest(home, vm_id, f"{keep}; rm -f {_KEY} {_KEY}.pub; {new}; {_ANEW}")


def own_host_key(home: Path, vm_id: str) -> None:
    """Give the guest its own host key back."""
    back = f"mv {_KEY}.own {_KEY}; mv {_KEY}.pub.own {_KEY}.pub"
    run_in_guest(home, vm_id, f"[ ! -e {_KEY}.own ] || {{ {back}; {_ANEW} }}")


def slow_guest(home: Path, vm_id: str) -> None:
    """Let everything in the guest run a quarter of the time."""
    (machine.folder(home, vm_id) / "tools" / machine.SLOW).write_text(_STUTTER)
    run_in_guest(home, vm_id, f"setsid sh {_SLOW} >/dev/null 2>&1 </dev/null &")


def fast(home: Path, vm_id: str) -> None:
    """Let the guest run all the time again."""
    (machine.folder(home, vm_id) / "tools" / machine.SLOW).unlink(missing_ok=True)


def _at_install(home: Path, vm_id: str, package: str, script: str) -> None:
    """Let a stand-in package run this while it is being installed."""
    _check_package(package)
    _is_simulated(home, package)
    run_in_guest(home, vm_id, f"mkdir -p {_ON_INSTALL} && echo {quote(script)} >{_ON_INSTALL}/{package}")


def _check_package(package: str) -> None:
    if not _PACKAGE.fullmatch(package):
        raise ConfigError(f"`{package}` is no package", code="lab.bad-package", target=package)


def _is_simulated(home: Path, package: str) -> None:
    """Refuse a package the lab does not make: nothing of it would ever fail."""
    made = sorted(each.name.partition("_")[0] for each in (home / "packages").glob("*.deb"))
    if package in made:
        return
    near = nearest_name(package, made)
    raise ConfigError(
        f"the lab has no stand-in package `{package}`",
        code="lab.bad-package",
        target=package,
        hint=f"did you mean `{near}`?" if near else f"use one of {', '.join(made)}",
    )


def run_in_guest(home: Path, vm_id: str, command: str) -> str:
    """Run a command in the guest, as root, without its sshd."""
    pid = machine.pid(machine.folder(home, vm_id))
    if pid is None:
        raise NotPossible(f"the guest of {vm_id} does not run", code="lab.no-guests", target=vm_id)
    guest = find_guest_init(pid)
    namespaces = ["--mount", "--uts", "--ipc", "--net", "--pid"]
    return hub.run("nsenter", "--target", str(guest), *namespaces, "--root", "--wd=/", "sh", "-c", command, "vsml-lab")


def find_guest_init(pid: int) -> int:
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
