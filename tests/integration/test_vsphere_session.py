"""Signing in: whom we believe, what we say when we do not, and what a lost session costs."""

from __future__ import annotations

import hashlib
import os
import socket
import ssl
import stat
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.integration import control, labs
from vsphere_ml.core.errors import ConfigError, VsmlError, VSphereError
from vsphere_ml.core.ports.vcenter import Scope
from vsphere_ml.vsphere.connection import session
from vsphere_ml.vsphere.connection.tls import Trust
from vsphere_ml.vsphere.gateway import Gateway

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from vsphere_ml.lab.state import Lab

pytestmark = pytest.mark.lab


def refused(lab: Lab, server: str = "", **how: Any) -> VsmlError:
    password = how.pop("password", "a password that was never sent")
    with pytest.raises(VsmlError) as caught:
        session.connect(server or lab.address, lab.username, password, Trust(**how), timeout_s=60)
    return caught.value


def thumbprint(lab: Lab) -> str:
    host, port = lab.address.split(":")
    pem = ssl.get_server_certificate((host, int(port)))
    digest = hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem)).hexdigest().upper()
    return ":".join(digest[i : i + 2] for i in range(0, len(digest), 2))


def logins(lab: Lab) -> int:
    return int(control.ask(lab, "GET", "calls").get("Login", 0))


def test_an_unknown_certificate_is_refused_with_what_to_type_before_any_password_is_sent(lab: Lab) -> None:
    before = logins(lab)
    error = refused(lab)
    assert (error.code, error.target) == ("vcenter.untrusted", lab.address)
    assert f'vcenter.thumbprint = "{thumbprint(lab)}"' in error.hint
    assert "vcenter.ca_file" in error.hint
    assert logins(lab) == before


def test_a_pinned_certificate_is_believed_without_its_ca(lab: Lab) -> None:
    for pin in (thumbprint(lab), thumbprint(lab).replace(":", "").lower()):
        session.connect(lab.address, lab.username, lab.password(), Trust(thumbprint=pin), timeout_s=60).close()


def test_another_certificate_than_the_pinned_one_is_refused_before_any_password_is_sent(lab: Lab) -> None:
    before = logins(lab)
    error = refused(lab, thumbprint="AB:" * 31 + "AB")
    assert error.code == "vcenter.untrusted"
    assert error.details == ("pinned: " + "AB:" * 31 + "AB", f"seen: {thumbprint(lab)}")
    assert logins(lab) == before


def test_insecure_believes_anybody_when_it_is_asked_for(lab: Lab) -> None:
    session.connect(lab.address, lab.username, lab.password(), Trust(insecure=True), timeout_s=60).close()


@pytest.mark.parametrize("form", ["{0}", "https://{0}/sdk", "https://{0}"])
def test_an_address_can_be_written_in_several_ways(lab: Lab, form: str) -> None:
    made = session.connect(
        form.format(lab.address), lab.username, lab.password(), Trust(ca_file=lab.ca_file), timeout_s=60
    )
    assert made.api_version == "8.0.3.0"
    made.close()


def test_a_wrong_password_is_said_without_the_password(lab: Lab) -> None:
    error = refused(lab, ca_file=lab.ca_file, password="wrong-horse-battery")
    assert error.code == "vcenter.sign-in"
    assert lab.username in error.message
    assert "wrong-horse" not in f"{error.message}{error.hint}{error.details}{error.__cause__!r}"


def test_a_ca_file_that_cannot_be_read_is_a_mistake_of_the_file(lab: Lab, tmp_path: Path) -> None:
    empty = tmp_path / "empty.pem"
    empty.touch()
    os.mkfifo(tmp_path / "fifo.pem")
    for path in (tmp_path / "missing.pem", empty, tmp_path / "fifo.pem", Path("/dev/zero")):
        error = refused(lab, ca_file=path)
        assert isinstance(error, ConfigError)
        assert (error.code, error.target) == ("vcenter.ca-file", str(path))
        assert not any(word in error.message for word in ("_ssl.c", "X509", "Errno"))


def test_nobody_there_is_unreachable(lab: Lab) -> None:
    with socket.socket() as deaf:  # it has a port, so that nobody else gets it, and does not listen there
        deaf.bind(("127.0.0.1", 0))
        assert refused(lab, f"127.0.0.1:{deaf.getsockname()[1]}").code == "vcenter.unreachable"
    assert "resolved" in refused(lab, "vcenter.invalid").message


def test_a_server_that_says_nothing_times_out(lab: Lab) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(VSphereError) as caught:
        session.connect(f"127.0.0.1:{silent.getsockname()[1]}", "u", "p", Trust(insecure=True), timeout_s=0.5)
    assert caught.value.code == "vcenter.timeout"


def test_a_web_server_that_is_no_vcenter_is_told_from_one(lab: Lab) -> None:
    with nonsense(lab) as port, pytest.raises(VSphereError) as caught:
        session.connect(f"127.0.0.1:{port}", "u", "p", Trust(insecure=True), timeout_s=60)
    assert caught.value.code == "vcenter.unreachable"


@contextmanager
def nonsense(lab: Lab) -> Iterator[int]:
    """Serve one TLS connection with an answer that is not vCenter's."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*(str(path) for path in self_signed(lab)))
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            raw, _ = listener.accept()
            with context.wrap_socket(raw, server_side=True) as secure:
                secure.recv(4096)
                secure.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")

        thread = threading.Thread(target=serve)
        thread.start()
        yield listener.getsockname()[1]
        thread.join()


def self_signed(lab: Lab) -> tuple[Path, Path]:
    # The lab's CA certificate signs itself, so it can stand for a server's.
    return lab.ca_file, lab.ca_file.with_name("ca.key")


def test_an_expired_session_is_renewed_for_reading_and_for_writing(lab: Lab) -> None:
    gateway = labs.gateway(lab)
    before = gateway.read_site(Scope())
    control.expire(lab)
    assert gateway.read_site(Scope()) == before
    control.expire(lab)
    with gateway.hold("renewed"):
        assert "vsml-lock-renewed" in {folder.path for folder in gateway.read_site(Scope()).folders}
    gateway.close()


def test_a_look_survives_a_restart_of_vcenter(lab: Lab) -> None:
    gateway = labs.gateway(lab)
    before = gateway.read_site(Scope())
    control.restart(lab, down_ms=700)
    assert gateway.read_site(Scope()).hosts == before.hosts
    gateway.close()


def test_the_password_and_the_session_never_reach_the_trace(lab: Lab, tmp_path: Path) -> None:
    path = tmp_path / "trace.xml"
    made = labs.sign_in(lab, trace=path)
    key = made.stub.GetSessionId()
    gateway = Gateway(made)
    gateway.read_site(Scope())
    gateway.close()
    text = path.read_text()
    assert "--> " in text
    assert "<userName>" in text
    assert "RetrievePropertiesEx" in text
    assert lab.password() not in text
    assert key
    assert key.strip('"') not in text
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_session_is_signed_out_at_the_end(lab: Lab) -> None:
    before = int(control.ask(lab, "GET", "calls").get("Logout", 0))
    labs.sign_in(lab).close()
    assert int(control.ask(lab, "GET", "calls")["Logout"]) == before + 1
