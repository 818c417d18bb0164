"""An exchange is bounded as a whole: a clock that is moved takes the place of a server that drips."""

from __future__ import annotations

import io
import math
import socket
import ssl
import threading
from datetime import UTC, datetime, timedelta
from http.client import HTTPResponse, IncompleteRead
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.fakes.clock import FakeClock
from vsphere_ml.vsphere.connection import bounds
from vsphere_ml.vsphere.connection.bounds import AnswerTooLargeError, BoundedSocket

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def identity(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A server's key and certificate in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "server.test")])
    now = datetime.now(UTC)
    signed = x509.CertificateBuilder(name, name, key.public_key(), 1, now - timedelta(1), now + timedelta(1))
    certificate = signed.sign(key, hashes.SHA256())
    encoding = serialization.Encoding.PEM
    private = key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    file = tmp_path_factory.mktemp("tls") / "server.pem"
    file.write_bytes(private + certificate.public_bytes(encoding))
    return file


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    """The time that deadlines are made of."""
    made = FakeClock()
    monkeypatch.setattr(bounds, "time", SimpleNamespace(monotonic=made.now))
    return made


@pytest.fixture
def ends(identity: Path) -> Iterator[tuple[BoundedSocket, ssl.SSLSocket]]:
    """A bounded client and the server it is connected to."""
    trusting, serving = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trusting.load_verify_locations(identity)
    trusting.check_hostname = False
    trusting.sslsocket_class = BoundedSocket
    serving.load_cert_chain(identity)
    ours, theirs = socket.socketpair()
    found: list[ssl.SSLSocket] = []
    accepting = threading.Thread(target=lambda: found.append(serving.wrap_socket(theirs, server_side=True)))
    accepting.start()
    client = trusting.wrap_socket(ours)
    accepting.join()
    with client, found[0] as server:
        yield cast("BoundedSocket", client), server


def read(client: BoundedSocket, most: int) -> bytes:
    """Read as http.client does."""
    buffer = bytearray(most)
    return bytes(buffer[: client.recv_into(buffer)])


def test_time_runs_from_the_start_of_an_exchange_and_not_from_byte_to_byte(
    ends: tuple[BoundedSocket, ssl.SSLSocket], clock: FakeClock
) -> None:
    client, server = ends
    server.sendall(b"abcdef")
    client.bound(3, math.inf)
    for _ in range(3):
        assert len(read(client, 1)) == 1
        clock.sleep(1)
    with pytest.raises(TimeoutError):
        read(client, 1)
    client.bound(3, math.inf)
    assert read(client, 1) == b"d", "the next exchange has its own time"


def test_a_read_waits_no_longer_than_what_is_left(ends: tuple[BoundedSocket, ssl.SSLSocket], clock: FakeClock) -> None:
    client, server = ends
    server.sendall(b"ab")
    client.bound(3, math.inf)
    read(client, 1)
    assert client.gettimeout() == 3
    clock.sleep(2)
    read(client, 1)
    assert client.gettimeout() == 1


def test_a_server_that_takes_no_request_is_left_too(
    ends: tuple[BoundedSocket, ssl.SSLSocket], clock: FakeClock
) -> None:
    client, _ = ends
    client.bound(3, math.inf)
    clock.sleep(2)
    client.send(b"x")
    assert client.gettimeout() == 1
    clock.sleep(1)
    with pytest.raises(TimeoutError):
        client.send(b"x")


def test_bytes_are_counted_over_the_exchange(ends: tuple[BoundedSocket, ssl.SSLSocket]) -> None:
    client, server = ends
    server.sendall(b"x" * 9)
    client.bound(60, 4)
    assert (read(client, 3), read(client, 1)) == (b"xxx", b"x")
    with pytest.raises(AnswerTooLargeError):
        read(client, 1)
    client.bound(60, 4)
    assert read(client, 4) == b"x" * 4


def test_without_bounds_there_are_none(ends: tuple[BoundedSocket, ssl.SSLSocket]) -> None:
    client, server = ends
    client.settimeout(60)
    server.sendall(b"x")
    assert (read(client, 1), client.gettimeout()) == (b"x", 60)


class Pieces(io.BytesIO):
    """What a server sent, which nobody asks for more at once than fits anywhere."""

    def read(self, size: int | None = -1) -> bytes:
        assert size is not None
        assert 0 <= size <= bounds.MIB
        return super().read(size)


@pytest.mark.parametrize("announced", [5, 1 << 50])
def test_no_memory_is_taken_for_what_a_server_only_announces(announced: int) -> None:
    sent = f"HTTP/1.1 200 OK\r\nContent-Length: {announced}\r\n\r\nabc".encode()
    response = HTTPResponse(cast("socket.socket", SimpleNamespace(makefile=lambda _mode: Pieces(sent))))
    response.begin()
    with pytest.raises(IncompleteRead) as cut:
        bounds.read_all(response)
    assert (cut.value.partial, cut.value.expected) == (b"abc", announced - 3)
