"""A lab for other people's clients, and the environments those clients run in."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import venv
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from vsphere_ml.lab import build, folders, server

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vsphere_ml.lab.state import Lab

LOCK = Path(__file__).parents[2] / "requirements" / "peers.lock"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VSML_STATE_DIR", str(tmp_path_factory.mktemp("state")))
        started, _ = server.up()
        try:
            yield started
        finally:
            server.down()


@pytest.fixture(scope="session")
def govc() -> Path:
    return build.govc()


@pytest.fixture(scope="session")
def ansible() -> Path:
    """Return the folder of Ansible's programs, installed once per checksum of its locked requirements."""
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
