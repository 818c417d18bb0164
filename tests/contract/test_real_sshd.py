"""The contract, kept by real OpenSSH servers: as root, and by sudo with and without a password."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.contract.shell_contract import ShellContract
from tests.fakes.clock import FakeClock
from tests.integration.shells import open_shell
from tests.integration.sshd import SUDO_PASSWORD, Sshd, running

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from vsphere_ml.ssh.session.shell import SshShell


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    folder = tmp_path_factory.mktemp("sshd")
    with running(folder) as (started,):
        yield started


@pytest.fixture
def place(tmp_path: Path) -> str:
    return str(tmp_path / "guest")


class TestAsRoot(ShellContract):
    @pytest.fixture
    def login(self) -> str:
        return "root"

    @pytest.fixture
    def shell(self, server: Sshd, tmp_path: Path) -> Iterator[SshShell]:
        with open_shell(server.target(), tmp_path / "log", FakeClock()) as opened:
            yield opened


class TestBySudo(ShellContract):
    @pytest.fixture
    def login(self) -> str:
        return "free"

    @pytest.fixture
    def shell(self, server: Sshd, tmp_path: Path) -> Iterator[SshShell]:
        with open_shell(server.target(user="free"), tmp_path / "log", FakeClock()) as opened:
            yield opened


class TestBySudoWithPassword(ShellContract):
    @pytest.fixture
    def login(self) -> str:
        return "asked"

    @pytest.fixture
    def shell(self, server: Sshd, tmp_path: Path) -> Iterator[SshShell]:
        target = server.target(user="asked", sudo_password=SUDO_PASSWORD)
        with open_shell(target, tmp_path / "log", FakeClock()) as opened:
            yield opened
