"""Builds other people's clients, once per checksum of their lock: govc, govmomi's simulator, and Ansible."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import venv
from pathlib import Path

from vsphere_ml.lab import build, folders

LOCK = Path(__file__).parents[2] / "requirements" / "peers.lock"


def ansible() -> Path:
    """Return the folder of Ansible's programs, installed first where they are not."""
    sources = LOCK.read_bytes() + sys.version.encode()
    home = folders.cache() / f"peers-{hashlib.sha256(sources).hexdigest()[:16]}"
    done = home / "made"
    with folders.alone(home.with_suffix(".lock")):
        if not done.exists():
            venv.create(home, clear=True, with_pip=True)
            pip = [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            subprocess.run([*pip, "--require-hashes", "-r", str(LOCK)], check=True)
            done.touch()
    return home / "bin"


if __name__ == "__main__":
    build.govc()
    build.vcsim()
    ansible()
