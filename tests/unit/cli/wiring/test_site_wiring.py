from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from vsphere_ml.cli.options import GlobalOptions
from vsphere_ml.cli.wiring import site_wiring
from vsphere_ml.core.errors import ConfigError, NotPossible
from vsphere_ml.core.model.spec import VCenterSpec

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.golden import Golden
    from tests.unit.cli.conftest import Shown

FILE = """\
[cluster]
name = "train"
[vcenter]
server = "from-file.test"
username = "file@test"
ca_file = "ca.pem"
[location]
datacenter = "dc-of-file"
[source]
template = "t"
[[nodes]]
name = "n-1"
cpus = 2
memory = "4GiB"
gpu = { profile = "A100-40C" }
network = { port_group = "vm" }
nic = { port_group = "roce" }
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder and an environment that names no vCenter."""
    for name in ("VSML_VCENTER_SERVER", "GOVC_URL", "VSPHERE_SERVER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("VSML_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_file_says_where_to_look_unless_an_option_does(folder: Path) -> None:
    (folder / "cluster.toml").write_text(FILE)
    assert site_wiring.target(None).vcenter.server == "from-file.test"
    assert site_wiring.target(None).datacenter == "dc-of-file"
    assert site_wiring.target(Path("cluster.toml"), server="x.test", datacenter="dc").vcenter.server == "x.test"
    assert site_wiring.target(Path("cluster.toml"), server="x.test", datacenter="dc").datacenter == "dc"
    assert site_wiring.target(Path("cluster.toml"), username="me@test").vcenter.username == "me@test"


def test_the_environment_is_asked_before_a_file_that_nobody_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "cluster.toml").write_text(FILE)
    monkeypatch.setenv("GOVC_URL", "env.test")
    assert site_wiring.target(None).vcenter == VCenterSpec()
    assert site_wiring.target(Path("cluster.toml")).vcenter.server == "from-file.test"


def test_a_server_given_replaces_the_lab_that_a_file_names(folder: Path) -> None:
    lines = [line for line in FILE.splitlines() if not line.startswith(("server", "username", "ca_file"))]
    (folder / "cluster.toml").write_text("\n".join(lines).replace("[vcenter]", '[vcenter]\nlab = "default"'))
    found = site_wiring.target(Path("cluster.toml"), server="x.test").vcenter
    assert (found.server, found.lab) == ("x.test", None)


def test_a_lab_stands_alone() -> None:
    assert site_wiring.target(None, lab="default").vcenter.lab == "default"
    with pytest.raises(ConfigError) as refused:
        site_wiring.target(None, lab="default", server="x.test")
    assert refused.value.code == "usage"


def test_a_lab_that_does_not_run_is_told_with_what_to_type(shown: Callable[..., Shown], golden: Golden) -> None:
    with pytest.raises(NotPossible) as refusal:
        site_wiring.connection(VCenterSpec(lab="default"), shown().terminal)
    golden(refusal.value.hint)


@pytest.mark.parametrize(
    ("settings", "options", "option"),
    [
        ({"insecure": True}, {}, "--insecure"),
        ({"tls_ca": Path("ca.pem")}, {}, "--tls-ca"),
        ({"thumbprint": "AA"}, {}, "--thumbprint"),
        ({}, {"username": "--username"}, "--username"),
    ],
)
def test_an_option_that_a_lab_would_leave_without_effect_is_refused(
    settings: dict[str, Any], options: dict[str, str], option: str, shown: Callable[..., Shown]
) -> None:
    to = site_wiring.SignInTarget(vcenter=VCenterSpec(lab="default"), options=options)
    with pytest.raises(ConfigError) as refused:
        site_wiring.endpoint(to, shown(GlobalOptions(**settings)).terminal)
    assert (refused.value.code, refused.value.target, refused.value.status) == ("usage", option, 2)


@pytest.mark.parametrize("other", [{"tls_ca": Path("ca.pem")}, {"thumbprint": "AA"}])
def test_verifying_and_not_verifying_exclude_each_other(other: dict[str, Any], shown: Callable[..., Shown]) -> None:
    to = site_wiring.SignInTarget(vcenter=VCenterSpec(server="x.test", username="u"))
    with pytest.raises(ConfigError) as refused:
        site_wiring.endpoint(to, shown(GlobalOptions(insecure=True, **other)).terminal)
    assert refused.value.code == "usage"


def test_options_replace_the_files_trust_and_no_verification_is_said_aloud(
    shown: Callable[..., Shown], monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    monkeypatch.setenv("VSML_VCENTER_PASSWORD", "hunter2-4711")
    spec = VCenterSpec(server="x.test", username="me@test", ca_file=Path("ca.pem"))
    pinned = site_wiring.connection(spec, shown(GlobalOptions(thumbprint="AB:CD")).terminal)
    assert (pinned.ca_file, pinned.insecure) == (None, False)
    made = shown(GlobalOptions(insecure=True))
    assert site_wiring.connection(spec, made.terminal).insecure
    golden(made.err.getvalue())
    assert "hunter2-4711" not in made.err.getvalue() + repr(pinned)


TRUST = ("ca_file", "thumbprint", "insecure")
PIN = ":".join(["AB"] * 32)


@pytest.mark.parametrize(
    ("options", "settings", "origins"),
    [
        ({}, {}, {"server": "vcenter.server", "username": "vcenter.username", "ca_file": "vcenter.ca_file"}),
        ({"server": "x.test"}, {}, {"server": "--server", "username": "vcenter.username"}),
        ({"username": "me@test"}, {}, {"server": "vcenter.server", "username": "--username"}),
        ({}, {"tls_ca": Path("b.pem")}, {"ca_file": "--tls-ca"}),
        ({}, {"thumbprint": PIN}, {"thumbprint": "--thumbprint"}),
        ({}, {"insecure": True}, {"insecure": "--insecure"}),
    ],
)
def test_each_part_of_a_connection_has_its_origin(
    folder: Path,
    shown: Callable[..., Shown],
    options: dict[str, str],
    settings: dict[str, Any],
    origins: dict[str, str],
) -> None:
    (folder / "cluster.toml").write_text(FILE)
    found = site_wiring.endpoint(
        site_wiring.target(Path("cluster.toml"), **options), shown(GlobalOptions(**settings)).terminal
    )
    assert {part: found.where[part] for part in origins} == origins
    assert len(set(TRUST) & set(found.where)) == 1


@pytest.mark.parametrize(
    ("variable", "value", "part"),
    [
        ("VSML_VCENTER_CA_FILE", "/ca.pem", "ca_file"),
        ("VSML_VCENTER_THUMBPRINT", PIN, "thumbprint"),
        ("VSML_VCENTER_INSECURE", "true", "insecure"),
        ("GOVC_TLS_CA_CERTS", "/ca.pem", "ca_file"),
        ("GOVC_INSECURE", "true", "insecure"),
        ("VSPHERE_ALLOW_UNVERIFIED_SSL", "true", "insecure"),
    ],
)
def test_trust_of_the_environment_has_its_variable_for_origin(
    shown: Callable[..., Shown], monkeypatch: pytest.MonkeyPatch, variable: str, value: str, part: str
) -> None:
    monkeypatch.setenv(variable, value)
    found = site_wiring.endpoint(site_wiring.target(None, server="x.test", username="me@test"), shown().terminal)
    assert found.where == {"server": "--server", "username": "--username", part: variable}


def test_a_file_is_written_whole_or_not_at_all(folder: Path) -> None:
    target = folder / "a.plan"
    target.write_text("old")
    site_wiring.write(target, "new")
    assert target.read_text() == "new"
    assert [path.name for path in folder.iterdir()] == ["a.plan"]
    with pytest.raises(ConfigError) as refusal:
        site_wiring.write(folder / "nowhere" / "a.plan", "x")
    assert refusal.value.code == "file.unwritable"


@pytest.mark.parametrize("content", [None, b"\xff\xfe"])
def test_a_plan_that_cannot_be_read_is_a_mistake_of_the_command_line(content: bytes | None, folder: Path) -> None:
    path = folder / "a.plan"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError) as refusal:
        site_wiring.read(path)
    assert refusal.value.code == "file.unreadable"


@pytest.mark.parametrize("special", ["/dev/zero", "fifo"])
def test_a_device_or_fifo_in_place_of_a_text_is_refused_and_not_read(tmp_path: Path, special: str) -> None:
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(ConfigError) as refusal:
        site_wiring.read(tmp_path / special)
    assert (refusal.value.code, refusal.value.target) == ("file.unreadable", str(tmp_path / special))


def test_a_text_larger_than_its_kind_may_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "large").write_text("12345")
    assert site_wiring.read(tmp_path / "large", 5) == "12345"
    with pytest.raises(ConfigError) as refusal:
        site_wiring.read(tmp_path / "large", 4)
    assert refusal.value.code == "file.unreadable"


def test_a_text_that_is_not_utf_8_is_refused_with_its_line(folder: Path) -> None:
    (folder / "text").write_bytes(b"one\ntwo\n\xff\n")
    with pytest.raises(ConfigError) as refused:
        site_wiring.read(folder / "text")
    assert refused.value.code == "file.unreadable"
    assert "line 3 " in refused.value.message
