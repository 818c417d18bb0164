"""A lab for other people's clients, and the environments those clients run in."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.peers import clients
from vsphere_ml.lab import build, server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from vsphere_ml.lab.state import Lab


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VSML_STATE_DIR", str(tmp_path_factory.mktemp("state")))
        started, _ = server.start_lab()
        try:
            yield started
        finally:
            server.stop_lab()


@pytest.fixture(scope="session")
def govc() -> Path:
    return build.govc()


@pytest.fixture(scope="session")
def ansible() -> Path:
    return clients.ansible()


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
