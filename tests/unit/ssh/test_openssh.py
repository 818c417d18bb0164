"""The words of OpenSSH's clients that go where vsml goes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from vsphere_ml.ssh.keys.known_hosts import KnownHosts
from vsphere_ml.ssh.openssh import copy_command, node_of
from vsphere_ml.ssh.session.target import SshTarget

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("path", "node"), [("node-1:data", "node-1"), ("./a:b", ""), ("data", ""), ("node-1:", "node-1"), (":x", "")]
)
def test_a_path_names_a_node_as_scp_reads_it(path: str, node: str) -> None:
    assert node_of(path) == node


def test_a_copy_goes_with_the_pinned_keys_and_leaves_paths_here_alone(tmp_path: Path) -> None:
    known, key = KnownHosts(tmp_path / "known_hosts"), tmp_path / "key"
    targets = {
        name: SshTarget(name=name, host=host, known_hosts=known, user="ubuntu", key_file=key, port=2222)
        for name, host in (("node-1", "10.0.0.11"), ("node-2", "fd00::12"))
    }
    words = copy_command(targets, ["a.txt", "node-1:b", "node-2:c"])
    assert words[-4:] == ["--", "a.txt", "ubuntu@10.0.0.11:b", "ubuntu@[fd00::12]:c"]
    assert words[words.index("-P") + 1] == "2222"
    assert words[words.index("-i") + 1] == str(key)
    assert f'UserKnownHostsFile="{known.path}"' in words
    assert "StrictHostKeyChecking=yes" in words
