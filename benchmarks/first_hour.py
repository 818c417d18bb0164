"""A stranger's first hour: `make demo` from a bare clone in a bare root file system, with a clock beside it.

    make bench-first-hour        # root on Debian or Ubuntu

The root is bootstrapped first, with nothing but make, git and CA certificates, and is not timed. All that the demo has
of this machine is its kernel, its cores, and how its package clients reach their registries.
"""

from __future__ import annotations

import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING

from vsphere_ml.lab import folders, machine_packages

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parents[1]
INCLUDED = "make,git,ca-certificates"
CLONE = "root/vsml"
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
# How this machine's package clients reach their registries; nothing else of its environment goes along.
KEPT = ("PIP_", "GOPROXY", "GONOSUMDB", "GOSUMDB", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy")
DEADLINE_S = 1800
# A root of its own rather than a chroot, in which unshare can make no mount private (util-linux 2.38).
# Arguments: the root, this machine's CA certificates, a shell's command for the clone in the root.
ENTER = """\
set -eu
mount --bind "$1" "$1"
cd "$1"
mount -t proc proc proc
mount -t sysfs sysfs sys
mount --rbind /dev dev
mount -t tmpfs run run
mount --bind "$2" etc/ssl/certs/ca-certificates.crt
pivot_root . mnt
umount -l /mnt
cd /root/vsml
exec sh -c "$3"
"""


@dataclass(frozen=True)
class Promise:
    """What a line of the demo's output shows, and within which seconds."""

    what: str
    line: str
    limit_s: float


PROMISES = (
    Promise("first plan on the screen", "plan: ", 90),
    Promise("`vsml verify` is green", "is verified in the lab", 150),
)
WHOLE_S = 360


def main() -> int:
    if os.geteuid() != 0 or machine_packages.missing_packages("guests"):
        sys.exit(f"needs root, and: {machine_packages.install_command(['mmdebstrap', 'iproute2'])}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the root goes also then
    print(
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {platform.platform()}, {os.cpu_count()} cores, "
        f"load {os.getloadavg()[0]:.1f} at the start",
        flush=True,
    )
    with bare_root() as root:
        return timed_demo(root)


@contextmanager
def bare_root() -> Iterator[Path]:
    """Make a root file system with a clone of what is committed here in it, and remove it at the end."""
    codename = platform.freedesktop_os_release()["VERSION_CODENAME"]
    archive = folders.cache() / f"bare-{codename}.tar"
    if not archive.exists():
        archive.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(
            ["mmdebstrap", "-q", "--variant=minbase", f"--include={INCLUDED}", codename, archive], check=True
        )
    root = Path(tempfile.mkdtemp(prefix="vsml-first-hour-"))
    try:
        subprocess.run(["tar", "-xf", archive, "-C", root], check=True)
        subprocess.run(["git", "clone", "-q", HERE, root / CLONE], check=True)
        shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")
        (root / "etc/hosts").write_text("127.0.0.1 localhost\n")  # what an installer writes, and no bootstrap does
        yield root
    finally:
        shutil.rmtree(root, ignore_errors=True)


def timed_demo(root: Path) -> int:
    """Run the demo, say when each step came, and return 0 when every promise was kept."""
    command = [
        "unshare",
        "--mount",
        "--pid",
        "--fork",
        "--kill-child",
        "sh",
        "-c",
        ENTER,
        "demo",
        str(root),
        CERTIFICATES,
        "make demo",
    ]
    began = time.monotonic()
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=environment(),
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        try:
            seen = watch(process.stdout, began)
            status = process.wait()
        finally:
            if process.poll() is None:  # else its number may be somebody else's by now
                os.killpg(process.pid, signal.SIGKILL)
    return report(seen, time.monotonic() - began, status)


def environment() -> dict[str, str]:
    env = {key: value for key, value in os.environ.items() if key.startswith(KEPT) and key != "PIP_FIND_LINKS"}
    return env | {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": "/root",
        "LANG": "C.UTF-8",
    }


def watch(output: IO[str], began: float) -> dict[str, float]:
    """Return when the line of each promise came; print the demo's steps as they come."""
    seen: dict[str, float] = {}
    with (folders.cache() / "first-hour.log").open("w") as log:
        for line in output:
            at = time.monotonic() - began
            log.write(f"{at:6.1f} {line}")
            log.flush()
            for promise in PROMISES:
                if promise.line in line:
                    seen.setdefault(promise.what, at)
            if line.startswith(("$ ", "setup:", "installing ", "building ", "making ", "built ", "made ", "error")):
                print(f"{at:6.1f} s  {line.rstrip()[:100]}", flush=True)
            if at > DEADLINE_S:
                break
    return seen


def report(seen: dict[str, float], whole_s: float, status: int) -> int:
    """Print each promise beside what was measured, and return 0 when all were kept."""
    print(f"\nexit status {status}; whole output: {folders.cache() / 'first-hour.log'}")
    rows = [(each.what, seen.get(each.what), each.limit_s) for each in PROMISES]
    rows.append(("the whole demo", whole_s, WHOLE_S))
    for what, measured, limit in rows:
        preserved = measured is not None and measured <= limit
        text = "never" if measured is None else f"{measured:.0f} s"
        print(f"{what:26} {text:>7}, limit {limit:.0f} s: {'kept' if preserved else 'NOT kept'}")
    return 0 if status == 0 and all(measured is not None and measured <= limit for _, measured, limit in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
