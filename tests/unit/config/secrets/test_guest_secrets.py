"""Secrets for guests come from where the file says, and are never repeated."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from vsphere_ml.config.load import load_text
from vsphere_ml.config.secrets.guest_secrets import secret
from vsphere_ml.core.errors import ConfigError
from vsphere_ml.core.model.spec import HostKeys, JumpHost, SecretSource

if TYPE_CHECKING:
    from pathlib import Path

    from tests.golden import Golden

ONE_NODE = """\
[cluster]
name = "train"
[source]
template = "ubuntu"
[[nodes]]
name = "node-1"
cpus = 8
memory = "32GiB"
gpu = { profile = "A100-40C" }
network = { port_group = "vm-mgmt" }
[guest]
"""


def read(source: SecretSource, environ: dict[str, str] | None = None) -> str:
    return secret("token", source, "token@train", environ or {}, lambda *_: "ring value").reveal()


def test_each_source_gives_its_own(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("one line\n")
    file.chmod(0o600)
    assert read(SecretSource(file=file)) == "one line"
    file.write_text("-----BEGIN-----\nx\n-----END-----\n")
    assert read(SecretSource(file=file)) == "-----BEGIN-----\nx\n-----END-----\n"
    assert read(SecretSource(env="TOKEN"), {"TOKEN": "env value"}) == "env value"
    assert read(SecretSource(keyring="vsml")) == "ring value"


def test_what_is_missing_open_or_no_text_is_told_and_not_repeated(tmp_path: Path) -> None:
    file = tmp_path / "token"
    for source, code in (
        (SecretSource(env="TOKEN"), "secret.missing"),
        (SecretSource(file=file), "secret.unreadable"),
    ):
        with pytest.raises(ConfigError) as raised:
            read(source)
        assert raised.value.code == code
    file.write_bytes(b"hunter2\xff")
    file.chmod(0o644)
    with pytest.raises(ConfigError) as raised:
        read(SecretSource(file=file))
    assert raised.value.code == "secret.permissions"
    file.chmod(0o600)
    with pytest.raises(ConfigError) as raised:
        read(SecretSource(file=file))
    assert raised.value.code == "secret.unreadable"
    assert "hunter2" not in str(raised.value)
    assert raised.value.__cause__ is None


def test_the_guest_table_is_read_whole(tmp_path: Path) -> None:
    text = (
        ONE_NODE
        + """\
user = "root"
key_file = "id"
playbooks = ["base", "./mine.toml"]
jump = { host = "bastion", user = "ada" }
host_keys = "trust-first-use"
sudo_password = { env = "SUDO" }
settings = { image = "nvcr.io/x:1" }
secrets = { registry_key = { file = "key" } }
"""
    )
    guest = load_text(text, tmp_path / "cluster.toml").guest
    assert (guest.playbooks, guest.host_keys) == (("base", "./mine.toml"), HostKeys.FIRST_USE)
    assert guest.jump == JumpHost(host="bastion", user="ada", key_file=tmp_path / "id")
    assert guest.sudo_password == SecretSource(env="SUDO")
    assert (guest.settings, guest.secrets) == (
        {"image": "nvcr.io/x:1"},
        {"registry_key": SecretSource(file=tmp_path / "key")},
    )


def test_a_table_of_fingerprints_trusts_nothing_else(golden: Golden) -> None:
    text = "SHA256:" + "A" * 43
    guest = load_text(ONE_NODE + f'host_keys = {{ node-1 = "{text}=" }}\n').guest
    assert (guest.host_keys, guest.fingerprints) == (HostKeys.PINNED, {"node-1": text})
    with pytest.raises(ConfigError, match="mistake") as raised:
        load_text(ONE_NODE + f'host_keys = {{ node-2 = "{text}" }}\n')
    golden(raised.value.problems[0])
