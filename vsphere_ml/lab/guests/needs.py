"""What lab guests need of the machine."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from vsphere_ml.core.errors import NotPossible
from vsphere_ml.lab import machine_packages


def missing_need() -> str | None:
    """Return why no guest can run here, in words; None when they can."""
    if not sys.platform.startswith("linux"):
        return "lab guests need Linux namespaces"
    if os.geteuid() != 0:
        return "lab guests need root, for network namespaces and mounts"
    if missing := machine_packages.missing_packages("guests"):
        command = machine_packages.install_command(missing)
        return f"lab guests need the Debian packages {', '.join(missing)}: {command}"
    if "overlay" not in Path("/proc/filesystems").read_text().split() and not _has_overlayfs():
        return "lab guests need overlayfs, which this kernel does not offer"
    return None


def check() -> None:
    """Raise NotPossible `lab.no-guests` where guests cannot run."""
    if reason := missing_need():
        raise NotPossible(reason, code="lab.no-guests", target="lab guests")


def _has_overlayfs() -> bool:
    return any(Path("/lib/modules").glob(f"{os.uname().release}/kernel/fs/overlayfs/*"))
