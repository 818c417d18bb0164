"""Connections that are begun before they are needed."""

from __future__ import annotations

import socket
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from vsphere_ml.ssh.ahead import ConnectionsAhead

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = "127.0.0.1"
WAIT_S = 60.0


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server((HERE, 0)) as server:
        server.settimeout(WAIT_S)
        yield server


@pytest.fixture
def ahead() -> Iterator[ConnectionsAhead]:
    with closing(ConnectionsAhead()) as made:
        yield made


def port_of(server: socket.socket) -> int:
    return int(server.getsockname()[1])


def test_a_connection_stands_before_it_is_taken_and_is_taken_once(
    ahead: ConnectionsAhead, listener: socket.socket
) -> None:
    ahead.begin([HERE], port_of(listener))
    accepted, peer = listener.accept()
    with accepted:
        taken = ahead.take(HERE, port_of(listener), WAIT_S)
        assert taken is not None
        with taken:
            assert taken.getsockname() == peer
        assert ahead.take(HERE, port_of(listener), WAIT_S) is None


@pytest.mark.parametrize("other", [("127.0.0.2", 0), (HERE, 1)], ids=["address", "port"])
def test_another_s_is_not_taken(ahead: ConnectionsAhead, listener: socket.socket, other: tuple[str, int]) -> None:
    ahead.begin([HERE], port_of(listener))
    assert ahead.take(other[0], port_of(listener) + other[1], WAIT_S) is None


def test_nothing_is_begun_to_a_name(ahead: ConnectionsAhead, listener: socket.socket) -> None:
    ahead.begin(["localhost", ""], port_of(listener))
    assert ahead.take("localhost", port_of(listener), WAIT_S) is None
    assert ahead.take("", port_of(listener), WAIT_S) is None


def test_a_refusal_is_told_when_it_is_taken(ahead: ConnectionsAhead, listener: socket.socket) -> None:
    port = port_of(listener)
    listener.close()
    ahead.begin([HERE], port)
    with pytest.raises(ConnectionRefusedError):
        ahead.take(HERE, port, WAIT_S)


def test_nothing_is_begun_where_there_is_no_route(ahead: ConnectionsAhead) -> None:
    nowhere = "255.255.255.255"
    ahead.begin([nowhere], 22)
    assert ahead.take(nowhere, 22, 0.1) is None


def test_one_that_does_not_come_about_is_late(ahead: ConnectionsAhead) -> None:
    with socket.socket() as full:  # Linux answers nobody when the backlog is full
        full.bind((HERE, 0))
        full.listen(0)
        waiting = [socket.socket() for _ in range(3)]
        for each in waiting:
            each.setblocking(False)
            each.connect_ex(full.getsockname())
        ahead.begin([HERE], port_of(full))
        with pytest.raises(TimeoutError):
            ahead.take(HERE, port_of(full), 0.1)
        for each in waiting:
            each.close()


def test_those_that_nobody_takes_are_closed(ahead: ConnectionsAhead, listener: socket.socket) -> None:
    ahead.begin([HERE], port_of(listener))
    ahead.close()
    with listener.accept()[0] as accepted:
        accepted.settimeout(WAIT_S)
        assert accepted.recv(1) == b""


def test_what_begins_them_imports_nothing_that_speaks_ssh() -> None:
    code = (
        "import sys; from vsphere_ml.cli.wiring import cluster_file, guest_wiring; import vsphere_ml.ssh.ahead;"
        "import vsphere_ml.ssh.addresses; print(sorted({'paramiko', 'fabric', 'cryptography'} & {*sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
