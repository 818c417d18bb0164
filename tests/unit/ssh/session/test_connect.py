from __future__ import annotations

import os
from pathlib import Path

import pytest

from vsphere_ml.core.errors import GuestError
from vsphere_ml.ssh.keys.known_hosts import KnownHosts
from vsphere_ml.ssh.session.connect import connect
from vsphere_ml.ssh.session.target import SshTarget


def fifo(folder: Path) -> Path:
    os.mkfifo(folder / "fifo", 0o600)
    return folder / "fifo"


@pytest.mark.parametrize("make", [fifo, lambda _: Path("/dev/zero"), lambda folder: folder, lambda _: Path("nu\0ll")])
@pytest.mark.timeout(20)
def test_a_key_file_without_an_end_is_refused_before_anybody_is_asked(make: object, tmp_path: Path) -> None:
    assert callable(make)
    nowhere = SshTarget(name="n", host="192.0.2.1", known_hosts=KnownHosts(tmp_path / "known"), key_file=make(tmp_path))
    with pytest.raises(GuestError) as raised:
        connect(nowhere)
    assert raised.value.code == "guest.key-unusable"
