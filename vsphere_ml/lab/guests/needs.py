"""What lab guests need of the machine."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from vsphere_ml.core.errors import NotPossible

SEARCH = f"{os.environ.get('PATH', '')}:/usr/local/sbin:/usr/sbin:/sbin"
# Each program, and the Debian package it comes with.
PROGRAMS = {
    "ip": "iproute2",
    "tc": "iproute2",
    "nsenter": "util-linux",
    "setpriv": "util-linux",
    "sshd": "openssh-server",
    "ssh-keygen": "openssh-client",
    "sudo": "sudo",
    "unshare": "util-linux",
    "useradd": "passwd",
    "apt-get": "apt",
    "dpkg-deb": "dpkg",
}


def lacking() -> str | None:
    """Return why no guest can run here, in words; None when they can."""
    if not sys.platform.startswith("linux"):
        return "lab guests need Linux namespaces"
    if os.geteuid() != 0:
        return "lab guests need root, for network namespaces and mounts"
    missing = sorted({package for name, package in PROGRAMS.items() if not shutil.which(name, path=SEARCH)})
    if missing:
        return f"lab guests need the Debian packages {', '.join(missing)}: apt-get install -y {' '.join(missing)}"
    if "overlay" not in Path("/proc/filesystems").read_text().split() and not _loadable():
        return "lab guests need overlayfs, which this kernel does not offer"
    return None


def check() -> None:
    """Raise NotPossible `lab.no-guests` where guests cannot run."""
    if reason := lacking():
        raise NotPossible(reason, code="lab.no-guests", target="lab guests")


def _loadable() -> bool:
    return any(Path("/lib/modules").glob(f"{os.uname().release}/kernel/fs/overlayfs/*"))
