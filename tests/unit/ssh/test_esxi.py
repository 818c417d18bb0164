"""The way to an ESXi host: by the cluster file's address, else by its name; vouched for by a person."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from vsphere_ml.core.model.spec import HostAccess, HostKeys, HostService, JumpHost
from vsphere_ml.core.secret import Secret
from vsphere_ml.ssh.esxi import EsxiShells
from vsphere_ml.ssh.session.connect import sign_in_options

if TYPE_CHECKING:
    from pathlib import Path

NAME = "esx-01.example.com"


@pytest.mark.parametrize(
    ("address", "host", "port"),
    [
        (None, NAME, 22),
        ("10.0.0.1", "10.0.0.1", 22),
        ("10.0.0.1:2222", "10.0.0.1", 2222),
        ("[fd00::1]:2222", "fd00::1", 2222),
        ("fd00::1", "fd00::1", 22),
    ],
)
def test_a_host_is_where_the_file_says(tmp_path: Path, address: str | None, host: str, port: int) -> None:
    access = HostAccess(addresses={} if address is None else {NAME: address})
    target = EsxiShells(access, tmp_path).target(NAME)
    assert (target.name, target.host, target.port, target.user) == (NAME, host, port, "root")


def test_only_a_person_vouches_for_a_host_key(tmp_path: Path) -> None:
    access = HostAccess(fingerprints={NAME: "SHA256:abc"}, jump=JumpHost(host="jump"))
    target = EsxiShells(access, tmp_path).target(NAME)
    assert (target.fingerprint, target.trust_first_use) == ("SHA256:abc", False)
    assert target.jump is not None
    assert EsxiShells(HostAccess(host_keys=HostKeys.FIRST_USE), tmp_path).target(NAME).trust_first_use


def test_the_service_is_started_only_where_the_file_says_so(tmp_path: Path) -> None:
    assert not EsxiShells(HostAccess(), tmp_path).starts_service
    assert EsxiShells(HostAccess(service=HostService.START), tmp_path).starts_service


def test_the_password_is_sent_and_never_shown_and_no_agent_is_asked(tmp_path: Path) -> None:
    target = EsxiShells(HostAccess(), tmp_path, Secret("s3cret")).target(NAME)
    options = sign_in_options(target, None, None)
    assert (options["password"], options["allow_agent"]) == ("s3cret", False)
    assert "s3cret" not in repr(target)
