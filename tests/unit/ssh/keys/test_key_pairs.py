"""A cluster's key pair."""

from __future__ import annotations

import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from vsphere_ml.core.errors import GuestError
from vsphere_ml.ssh.keys.key_pairs import key_pair, read_key_pair

if TYPE_CHECKING:
    from pathlib import Path

    from tests.golden import Golden

needs_keygen = pytest.mark.skipif(not shutil.which("ssh-keygen"), reason="needs ssh-keygen (openssh-client)")


def keygen(*arguments: str) -> str:
    return subprocess.run(["ssh-keygen", *arguments], check=True, capture_output=True, text=True).stdout.strip()


@needs_keygen
def test_the_pair_is_made_once_and_is_openssh_s(tmp_path: Path) -> None:
    pair = key_pair(tmp_path / "state", "train")
    assert pair.private.stat().st_mode & 0o777 == 0o600
    assert pair.public.split()[::2][0] == "ssh-ed25519"
    assert pair.public.endswith(" vsml train")
    assert keygen("-y", "-f", str(pair.private)).split()[:2] == pair.public.split()[:2]
    assert key_pair(tmp_path / "state", "train") == pair


def test_two_runs_at_once_get_the_same_pair(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        pairs = set(pool.map(lambda _: key_pair(tmp_path, "train"), range(8)))
    assert len(pairs) == 1


def test_a_key_that_others_may_read_is_refused(tmp_path: Path) -> None:
    private = key_pair(tmp_path, "train").private
    private.chmod(0o640)
    with pytest.raises(GuestError) as caught:
        key_pair(tmp_path, "train")
    assert caught.value.code == "guest.key-unusable"
    assert caught.value.hint == f"chmod 600 {private}"


@needs_keygen
def test_a_key_with_a_passphrase_goes_to_the_agent(tmp_path: Path, golden: Golden) -> None:
    private = tmp_path / "id"
    keygen("-q", "-t", "ed25519", "-N", "secret words", "-f", str(private))
    with pytest.raises(GuestError) as caught:
        read_key_pair(private)
    assert caught.value.code == "guest.key-unusable"
    golden(caught.value)


@pytest.mark.parametrize("text", [None, "", "no key\n", "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n"])
def test_what_is_no_key_is_refused(tmp_path: Path, text: str | None) -> None:
    private = tmp_path / "id"
    if text is not None:
        private.touch(0o600)
        private.write_text(text)
    with pytest.raises(GuestError) as caught:
        read_key_pair(private)
    assert caught.value.code == "guest.key-unusable"
    assert str(private) in caught.value.hint
