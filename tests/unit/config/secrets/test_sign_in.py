from __future__ import annotations

import copy
import json
import pickle
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import keyring as library
import pytest
from keyring.backends import fail, null

from vsphere_ml.config.secrets.passwords import Account, keyring_lookup, password
from vsphere_ml.config.secrets.sign_in import SignIn, connection
from vsphere_ml.core.errors import ConfigError
from vsphere_ml.core.model.spec import SecretSource, VCenterSpec
from vsphere_ml.core.secret import Secret

if TYPE_CHECKING:
    from tests.golden import Golden

HERE = VCenterSpec(server="vc.test", username="ada")
ADA = Account("vc.test", "ada")


def no_keyring(service: str, account: str) -> str | None:
    raise ConfigError("there is none", code="secret.keyring")


def keyring(service: str, account: str) -> str | None:
    return {("vsml", "ada@vc.test"): "from-keyring", ("mine", "ada@vc.test"): "from-mine"}.get((service, account))


def found(environ: dict[str, str], spec: VCenterSpec = HERE) -> SignIn:
    return connection(spec, environ, None, no_keyring)


def test_a_secret_shows_itself_to_nobody() -> None:
    secret = Secret("hunter2")
    shown = [
        repr(secret),
        str(secret),
        f"{secret}",
        f"{secret:>10}",
        f"{[secret]}",
        "%s" % secret,  # noqa: UP031 - one of the ways
        repr(copy.deepcopy(secret)),
    ]
    assert not [each for each in shown if "hunter2" in each]
    assert secret.reveal() == "hunter2"
    assert not hasattr(secret, "__dict__")


def test_a_secret_is_neither_pickled_nor_made_json() -> None:
    with pytest.raises(TypeError, match="pickled"):
        pickle.dumps(Secret("hunter2"))
    with pytest.raises(TypeError):
        json.dumps(Secret("hunter2"))


def test_secrets_compare_by_their_text() -> None:
    assert Secret("a") == Secret("a")
    assert Secret("a") != Secret("b")
    assert Secret("a") != "a"


@pytest.mark.parametrize(
    ("environ", "text", "where"),
    [
        ({"VSML_VCENTER_PASSWORD": "a", "GOVC_PASSWORD": "b", "VSPHERE_PASSWORD": "c"}, "a", "VSML_VCENTER_PASSWORD"),
        ({"GOVC_PASSWORD": "b", "VSPHERE_PASSWORD": "c"}, "b", "GOVC_PASSWORD"),
        ({"VSPHERE_PASSWORD": "c"}, "c", "VSPHERE_PASSWORD"),
        ({"VSML_VCENTER_PASSWORD": "", "VSPHERE_PASSWORD": "c"}, "c", "VSPHERE_PASSWORD"),
        ({"GOVC_URL": "https://ada:p%40ss@vc.test/sdk"}, "p@ss", "GOVC_URL"),
        ({"GOVC_URL": "ada:p@ss@vc.test"}, "p@ss", "GOVC_URL"),
        ({"GOVC_URL": "ada:url@vc.test", "GOVC_PASSWORD": "own"}, "own", "GOVC_PASSWORD"),
    ],
)
def test_the_environment_is_asked_in_order(environ: dict[str, str], text: str, where: str) -> None:
    answer = found(environ)
    assert (answer.password.reveal(), answer.where["password"]) == (text, where)


@pytest.mark.parametrize(
    "environ",
    [
        {"GOVC_URL": "other.test", "GOVC_PASSWORD": "x"},
        {"VSPHERE_USER": "eve", "VSPHERE_PASSWORD": "x"},
        {"GOVC_URL": "eve:x@vc.test"},
    ],
)
def test_a_password_is_never_sent_where_it_was_not_meant_for(environ: dict[str, str], golden: Golden) -> None:
    with pytest.raises(ConfigError) as raised:
        found(environ)
    assert raised.value.code == "secret.missing"
    golden(raised.value.message)


def test_servers_are_the_same_however_they_are_written() -> None:
    environ = {"GOVC_URL": "https://VC.test:443/sdk", "GOVC_PASSWORD": "x"}
    assert found(environ).password == Secret("x")


def test_the_file_wins_over_the_environment() -> None:
    environ = {"VSML_VCENTER_SERVER": "vc.test", "VSML_VCENTER_USERNAME": "ada", "VSML_VCENTER_PASSWORD": "x"}
    assert found(environ).where == {
        "server": "vcenter.server",
        "username": "vcenter.username",
        "password": "VSML_VCENTER_PASSWORD",
        "ca_file": "the default",
    }


def test_the_environment_alone_is_enough() -> None:
    answer = found({"GOVC_URL": "ada:secret@vc.test:8989", "GOVC_INSECURE": "1"}, VCenterSpec())
    assert (answer.server, answer.username, answer.insecure) == ("vc.test:8989", "ada", True)
    assert set(answer.where.values()) == {"GOVC_URL", "GOVC_INSECURE"}


@pytest.mark.parametrize(
    ("environ", "code"), [({}, "vcenter.no-server"), ({"VSPHERE_SERVER": "vc.test"}, "vcenter.no-username")]
)
def test_what_nobody_said_is_asked_for_by_name(environ: dict[str, str], code: str) -> None:
    with pytest.raises(ConfigError) as raised:
        found(environ, VCenterSpec())
    assert raised.value.code == code
    assert "VSML_VCENTER_" in raised.value.hint


@pytest.mark.parametrize(
    ("environ", "trust"),
    [
        ({"VSML_VCENTER_CA_FILE": "/ca.pem"}, (Path("/ca.pem"), None, False)),
        ({"VSML_VCENTER_THUMBPRINT": "ab" * 32}, (None, ":".join(["AB"] * 32), False)),
        ({"GOVC_TLS_CA_CERTS": "/ca.pem", "GOVC_INSECURE": "true"}, (Path("/ca.pem"), None, False)),
        ({"VSML_VCENTER_INSECURE": "0", "VSPHERE_ALLOW_UNVERIFIED_SSL": "yes"}, (None, None, True)),
        ({"GOVC_URL": "other.test", "GOVC_INSECURE": "1"}, (None, None, False)),
        ({}, (None, None, False)),
    ],
)
def test_trust_comes_from_who_names_this_server(environ: dict[str, str], trust: tuple[object, ...]) -> None:
    answer = found({"VSML_VCENTER_PASSWORD": "x", **environ})
    assert (answer.ca_file, answer.thumbprint, answer.insecure) == trust


def test_trust_of_the_file_is_not_loosened_by_the_environment() -> None:
    spec = VCenterSpec(server="vc.test", username="ada", ca_file=Path("/ca.pem"))
    answer = found({"VSML_VCENTER_PASSWORD": "x", "VSML_VCENTER_INSECURE": "1"}, spec)
    assert (answer.ca_file, answer.insecure, answer.where["ca_file"]) == (Path("/ca.pem"), False, "vcenter.ca_file")


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("GOVC_URL", "https://ada:hun/ter2@vc.test"),
        ("GOVC_URL", "http://ada:hunter2@vc.test"),
        ("GOVC_URL", "https://ada:hunter2@[vc.test"),
        ("GOVC_URL", "https://ada:hunter2@vc.test/other"),
        ("VSML_VCENTER_SERVER", "ada:hunter2@vc.test"),
        ("VSML_VCENTER_INSECURE", "hunter2"),
        ("VSML_VCENTER_THUMBPRINT", "hunter2"),
        ("GOVC_TLS_CA_CERTS", "hunter2:b.pem"),
    ],
)
def test_a_variable_that_makes_no_sense_is_named_and_not_repeated(variable: str, value: str) -> None:
    with pytest.raises(ConfigError) as raised:
        found({variable: value, "VSML_VCENTER_PASSWORD": "x"})
    assert (raised.value.code, raised.value.target) == ("env.invalid", variable)
    chain = [raised.value, raised.value.__cause__]
    assert not [each for each in chain if "hunter2" in repr(each) or "ter2" in repr(each)]


def test_a_source_of_the_file_is_the_only_one(tmp_path: Path, golden: Golden) -> None:
    environ = {"MINE": "from-env", "VSML_VCENTER_PASSWORD": "x"}
    file = tmp_path / "secret"
    file.write_text("from-file\nsecond line\n")
    file.chmod(0o600)
    sources = [SecretSource(env="MINE"), SecretSource(file=file), SecretSource(keyring="mine")]
    answers = [password(source, ADA, environ, None, keyring) for source in sources]
    assert [each.secret.reveal() for each in answers] == ["from-env", "from-file", "from-mine"]
    golden([each.where for each in answers])


@pytest.mark.parametrize(
    "source", [SecretSource(env="UNSET"), SecretSource(file=Path("/nowhere")), SecretSource(keyring="other")]
)
def test_a_source_that_has_nothing_is_not_replaced_by_another(source: SecretSource) -> None:
    with pytest.raises(ConfigError) as raised:
        password(source, ADA, {"VSML_VCENTER_PASSWORD": "x"}, lambda _: "typed", keyring)
    assert raised.value.code in {"secret.missing", "secret.unreadable"}
    assert raised.value.hint


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644])
def test_a_file_others_can_read_is_refused(mode: int, tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("hunter2")
    file.chmod(mode)
    with pytest.raises(ConfigError) as raised:
        password(SecretSource(file=file), ADA, {}, None, no_keyring)
    assert (raised.value.code, raised.value.hint) == ("secret.permissions", f"chmod 600 {file}")


@pytest.mark.parametrize(("content", "code"), [(b"", "secret.missing"), (b"hunter2\xff", "secret.unreadable")])
def test_a_file_without_a_password_is_told(content: bytes, code: str, tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_bytes(content)
    file.chmod(0o600)
    with pytest.raises(ConfigError) as raised:
        password(SecretSource(file=file), ADA, {}, None, no_keyring)
    assert raised.value.code == code
    assert "hunter2" not in repr((raised.value, raised.value.__cause__))


def test_the_keyring_comes_before_the_prompt() -> None:
    typed = password(SecretSource(), ADA, {}, lambda _: "typed", no_keyring)
    assert (typed.secret.reveal(), typed.where) == ("typed", "prompt")
    assert password(SecretSource(), ADA, {}, lambda _: "typed", keyring).secret == Secret("from-keyring")


def test_the_prompt_says_whose_password_it_wants() -> None:
    asked: list[str] = []

    def prompt(question: str) -> str:
        asked.append(question)
        return "typed"

    connection(HERE, {}, prompt, no_keyring)
    assert asked == ["password of ada@vc.test: "]


def end_of_input(question: str) -> str:
    raise EOFError


@pytest.mark.parametrize("prompt", [None, end_of_input, lambda _: ""])
def test_without_any_source_the_error_says_what_to_type(prompt: object) -> None:
    assert prompt is None or callable(prompt)
    with pytest.raises(ConfigError) as raised:
        connection(HERE, {}, prompt, no_keyring)
    assert raised.value.code == "secret.missing"
    assert raised.value.hint == "read -rs VSML_VCENTER_PASSWORD && export VSML_VCENTER_PASSWORD"


def test_a_connection_can_be_printed_and_taken_apart_without_its_secret() -> None:
    answer = found({"VSML_VCENTER_PASSWORD": "hunter2"})
    assert "hunter2" not in repr(answer)
    assert "hunter2" not in str(asdict(answer))


def test_the_systems_keyring_answers_or_is_told_as_a_config_error() -> None:
    before = library.get_keyring()
    try:
        library.set_keyring(null.Keyring())  # type: ignore[no-untyped-call]
        assert keyring_lookup("vsml", "ada@vc.test") is None
        library.set_keyring(fail.Keyring())  # type: ignore[no-untyped-call]
        with pytest.raises(ConfigError) as raised:
            keyring_lookup("vsml", "ada@vc.test")
        assert raised.value.code == "secret.keyring"
    finally:
        library.set_keyring(before)
