"""The lab's network: a hub with its bridges, and the operator's way into it.

Everything hangs on one process, the hub, which is pid 1 of the PID namespace that all guests live in. When it ends the
kernel ends the guests, and takes their namespaces, mounts and adapters along: nothing has to be remembered to be
removed. The hub ends with the lab, whose pipe it reads from.
"""

from __future__ import annotations

import hashlib
import ipaddress
import json
import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from vsphere_ml.core.errors import NotPossible
from vsphere_ml.lab import folders
from vsphere_ml.lab.machine_packages import SEARCH
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = Path(__file__).parent
DEADLINE_S = 60.0
PAUSE_S = 0.02  # between two looks: each guest that boots is looked at by a process of its own
NETWORKS = Path("/run/lock/vsml-lab-networks")  # held while a lab chooses its network
BRIDGES = (
    "management",
    "fabric",
)  # that hub.sh makes; a guest's first adapter is on the first, its others on the second
_FIRST, COUNT = 77, 50  # 10.77.0.0/16 and the ones after it


@dataclass(frozen=True, slots=True)
class Hub:
    """A hub that runs. `pid` is as the machine counts."""

    home: Path
    pid: int

    @property
    def device(self) -> str:
        """The operator's end of the lab's network, on this machine."""
        return device(self.home)

    @property
    def network(self) -> ipaddress.IPv4Network:
        """The lab's own addresses. The operator has the first one."""
        return ipaddress.IPv4Network((self.home / "network").read_text().strip())

    @property
    def operator(self) -> ipaddress.IPv4Address:
        return self.network[1]


def device(home: Path) -> str:
    """Return the name of the operator's adapter; names of adapters hold 15 letters at most."""
    return f"vsml-{hashlib.sha256(os.fsencode(home)).hexdigest()[:8]}"


def run(*command: str) -> str:
    """Return what a command printed; NotPossible `lab.guest-failed` when it fails."""
    done = _run_command(command)
    if done.returncode:
        raise NotPossible(
            f"`{' '.join(command)}` failed: {done.stderr.strip()}", code="lab.guest-failed", target="lab guests"
        )
    return done.stdout


def attempt(*command: str) -> bool:
    """Run a command that may fail, and return whether it did what it should."""
    return _run_command(command).returncode == 0


def _run_command(command: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment())  # noqa: S603 - no shell, our own programs


def environment() -> dict[str, str]:
    """Return an environment without the caller's settings, secrets among them."""
    return {"PATH": SEARCH, "LANG": "C.UTF-8"}


def find(home: Path) -> Hub | None:
    """Return the hub of these guests, if it runs."""
    with suppress(OSError, ValueError):
        pid = int((home / "hub.pid").read_text())
        if is_ours(pid, "hub.sh", home):
            return Hub(home, pid)
    return None


def is_ours(pid: int, program: str, folder: Path) -> bool:
    """Return whether `pid` is that program for that folder: a number may have been given to somebody else."""
    with suppress(OSError):
        arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        return os.fsencode(folder) in arguments and any(each.endswith(program.encode()) for each in arguments)
    return False


def start(home: Path, lifeline: int) -> Hub:
    """Return the hub, started when it does not run yet. `lifeline` is a pipe that ends with the lab."""
    if (hub := find(home)) is not None:
        return hub
    for folder in ("disks", "vms"):
        (home / folder).mkdir(parents=True, exist_ok=True, mode=0o700)
    (home / "hub.pid").unlink(missing_ok=True)
    with folders.hold_lock(NETWORKS):
        return _start_hub(home, lifeline)


def _start_hub(home: Path, lifeline: int) -> Hub:
    """Start the hub; no other lab may choose a network before this one's route is there to be seen."""
    (home / "network").write_text(f"{_free_network(home)}\n")
    unshare = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--propagation", "private"]
    spawn([*unshare, "sh", str(HERE / "hub.sh"), str(home)], home / "hub.log", stdin=lifeline)
    await_(lambda: find(home) is not None, "the lab's network did not come up", home / "hub.log")
    hub = find(home)
    assert hub is not None  # noqa: S101 - just seen
    _attach(hub)
    return hub


def end(home: Path) -> None:
    """End the hub, and with it every guest; returns when nothing of them is left."""
    try:
        pid = int((home / "hub.pid").read_text())
    except (OSError, ValueError):
        return
    # The kernel would take it away with the hub's network, but when it finds the time.
    attempt("ip", "link", "delete", device(home))
    if is_ours(pid, "hub.sh", home):
        kill(pid)
    _while(lambda: _ending(pid))  # the lab's own end has ended it already


def kill(pid: int) -> None:
    """Kill a pid 1 and wait for the end of all that it was pid 1 of."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    _while(lambda: _state(pid) not in {"", "Z", "X"})


def _while(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while true() and time.monotonic() < deadline:
        time.sleep(0.005)


def _ending(pid: int) -> bool:
    """Return whether it has let go of its memory, arguments included, and waits for the guests' end."""
    with suppress(OSError):
        return _state(pid) not in {"", "Z"} and not Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


def _state(pid: int) -> str:
    with suppress(OSError, IndexError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return ""


def spawn(command: list[str], log: Path, stdin: int = subprocess.DEVNULL) -> None:
    """Start a process that outlives this one."""
    with log.open("ab") as file:
        process = subprocess.Popen(  # noqa: S603 - no shell, our own programs
            command, stdin=stdin, stdout=file, stderr=file, start_new_session=True, env=environment(), cwd="/"
        )
    process.returncode = 0  # its end is none of this process's business


def await_(ready: Callable[[], bool], otherwise: str, log: Path, deadline_s: float = DEADLINE_S) -> None:
    """Return when `ready()` is true; NotPossible `lab.guest-failed` with the log's end when that takes too long."""
    deadline = time.monotonic() + deadline_s
    while not ready():
        if time.monotonic() > deadline:
            lines = tuple(log.read_text(errors="replace").splitlines()[-10:]) if log.exists() else ()
            raise NotPossible(otherwise, code="lab.guest-failed", target=str(log), details=lines)
        time.sleep(PAUSE_S)


def _attach(hub: Hub) -> None:
    """Lay the operator's cable: a device of this machine that leads into the hub."""
    run("ip", "link", "add", hub.device, "type", "veth", "peer", "name", "operator", "netns", str(hub.pid))
    run("nsenter", f"--net=/proc/{hub.pid}/ns/net", "ip", "link", "set", "operator", "master", "management", "up")
    run("ip", "address", "add", f"{hub.operator}/{hub.network.prefixlen}", "dev", hub.device)
    run("ip", "link", "set", hub.device, "up")


def _free_network(home: Path) -> ipaddress.IPv4Network:
    """Return a network that no route of this machine leads to; labs begin to look at different places."""
    first = begin(home)
    taken = [_network(route["dst"]) for route in json.loads(run("ip", "-4", "-j", "route"))]
    for offset in range(COUNT):
        network = ipaddress.IPv4Network(f"10.{_FIRST + (first + offset) % COUNT}.0.0/16")
        if not any(each is not None and each.overlaps(network) for each in taken):
            return network
    raise NotPossible("no network 10.77.0.0/16 to 10.126.0.0/16 is free", code="lab.guest-failed", target="lab guests")


def begin(home: Path) -> int:
    """Return at which of the networks a lab begins to look for a free one."""
    return int(hashlib.sha256(os.fsencode(home)).hexdigest()[:8], 16) % COUNT


def _network(text: str) -> ipaddress.IPv4Network | None:
    return None if text == "default" else ipaddress.IPv4Network(text, strict=False)
