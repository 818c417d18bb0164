from __future__ import annotations

from typing import TYPE_CHECKING

import paramiko
import pytest

from vsphere_ml.ssh.keys.known_hosts import KnownHosts
from vsphere_ml.ssh.session.sign_in import translate
from vsphere_ml.ssh.session.target import SshTarget

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (paramiko.AuthenticationException("Authentication timeout."), "guest.timeout"),  # paramiko 4.0
        (paramiko.AuthenticationException("Authentication failed."), "guest.sign-in"),
        (
            paramiko.AuthenticationException("Authentication failed: transport shut down or saw EOF"),  # paramiko 4.0
            "guest.unreachable",
        ),
        (TimeoutError(), "guest.timeout"),
    ],
)
def test_a_guest_too_slow_to_sign_in_to_is_not_one_that_refuses(error: Exception, code: str, tmp_path: Path) -> None:
    target = SshTarget(name="node-1", host="192.0.2.1", known_hosts=KnownHosts(tmp_path / "known"), user="ubuntu")
    assert translate(error, target).code == code
