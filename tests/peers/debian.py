"""Programs of Debian's packages, unpacked: an installed one may run as a service, and would stay on the machine."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from vsphere_ml.lab import folders


def rsync() -> Path:
    """Return a folder with rsync, and the libraries that a machine without it may not have."""
    return unpacked("rsync", "libpopt0", "libxxhash0")


def unpacked(*packages: str) -> Path:
    """Return a folder with these packages' files, downloaded first where it is not there; its name is the first one's.

    The machine's own lists of packages may be old, so that they are fetched anew.
    """
    home = folders.cache() / f"peers-{packages[0]}"
    with folders.hold_lock(home.with_suffix(".lock")):
        if not home.exists():
            with tempfile.TemporaryDirectory() as scratch:
                _unpack(Path(scratch), packages)
                shutil.move(Path(scratch) / "root", home)
    return home


def _unpack(scratch: Path, packages: tuple[str, ...]) -> None:
    (scratch / "lists" / "partial").mkdir(parents=True)
    apt = ["apt-get", "-qq", "-o", f"Dir::State::lists={scratch / 'lists'}", "-o", "APT::Sandbox::User=root"]
    subprocess.run([*apt, "update"], check=True)
    subprocess.run([*apt, "download", *packages], cwd=scratch, check=True)
    for package in scratch.glob("*.deb"):
        subprocess.run(["dpkg-deb", "--extract", package, scratch / "root"], check=True)
