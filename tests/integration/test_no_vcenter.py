"""Ports where something else than a vCenter answers: what is said of them is plain, short and nobody else's words."""

from __future__ import annotations

import socket
import ssl
import threading
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from vsphere_ml.core.errors import VsmlError
from vsphere_ml.vsphere.connection import session
from vsphere_ml.vsphere.connection.tls import Trust

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate that signs itself, with its key, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now, now + timedelta(1))
        .sign(key, hashes.SHA256())
        .public_bytes(serialization.Encoding.PEM)
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path = tmp_path_factory.mktemp("tls") / "server.pem"
    path.write_bytes(private + made)
    return path


@contextmanager
def serving(serve: Callable[[socket.socket], None]) -> Iterator[str]:
    """Answer every connection so, until the test is over; yield the address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    with suppress(OSError), connection:
                        serve(connection)

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
    thread.join()


def over_tls(certificate: Path, answer: bytes) -> Callable[[socket.socket], None]:
    """Return what answers any request with these bytes."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)

    def serve(connection: socket.socket) -> None:
        with context.wrap_socket(connection, server_side=True) as secure:
            secure.recv(4096)
            secure.sendall(answer)

    return serve


def in_the_clear(answer: bytes) -> Callable[[socket.socket], None]:
    def serve(connection: socket.socket) -> None:
        connection.sendall(answer)
        connection.recv(4096)

    return serve


def refused(address: str) -> VsmlError:
    with pytest.raises(VsmlError) as caught:
        session.connect(address, "u", "p", Trust(insecure=True), timeout_s=60)
    return caught.value


@pytest.mark.parametrize(
    "answer",
    [b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n", b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", b"220 mail\r\n"],
)
def test_a_port_without_tls_is_told_as_that_in_plain_words(answer: bytes) -> None:
    with serving(in_the_clear(answer)) as address:
        error = refused(address)
    assert (error.code, error.target) == ("vcenter.unreachable", address)
    assert "TLS" in error.message
    assert not any(word in error.message for word in ("_ssl.c", "SSL:", "WRONG_VERSION"))


def test_a_server_that_hangs_up_while_tls_is_set_up_is_told_as_that(certificate: Path) -> None:
    with serving(lambda connection: connection.close()) as address:
        error = refused(address)
    assert error.code == "vcenter.unreachable"
    assert "_ssl.c" not in error.message


@pytest.mark.parametrize("answer", [b"\x1b[31m" + b"garbage " * 400 + b"\r\n\r\n", b"\xff\x00" * 3000 + b"\r\n\r\n"])
def test_a_servers_own_bytes_are_clipped_and_printable(certificate: Path, answer: bytes) -> None:
    with serving(over_tls(certificate, answer)) as address:
        error = refused(address)
    assert error.code == "vcenter.unreachable"
    assert len(error.message) < 300
    assert error.message.isprintable()


def test_a_status_line_of_a_proxy_is_told_with_its_number(certificate: Path) -> None:
    answer = b"HTTP/1.1 503 " + b"No healthy upstream " * 100 + b"\r\nContent-Length: 0\r\n\r\n"
    with serving(over_tls(certificate, answer)) as address:
        error = refused(address)
    assert error.code == "vcenter.unreachable"
    assert "503" in error.message
    assert len(error.message) < 300


def test_headers_that_never_end_are_left(certificate: Path) -> None:
    answer = b"HTTP/1.1 200 OK\r\n" + b"X-A: b\r\n" * 1000
    with serving(over_tls(certificate, answer)) as address:
        assert refused(address).code == "vcenter.unreachable"
