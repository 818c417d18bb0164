"""The servers that tests of SSH sign in to, and what those tests say often. Their modules import the fixtures."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.fakes.clock import FakeClock
from tests.integration.shells import open_shell
from tests.integration.sshd import Sshd, running
from vsphere_ml.core.errors import GuestError, VsmlError
from vsphere_ml.core.secret import Secret
from vsphere_ml.ssh.session.connect import close, connect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from vsphere_ml.ssh.session.shell import SshShell
    from vsphere_ml.ssh.session.target import SshTarget

SECRET = Secret("t0ken-of-the-licence-server")


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Sshd]]:
    with running(tmp_path_factory.mktemp("sshd"), 3) as started:
        yield started


@pytest.fixture
def server(servers: list[Sshd]) -> Iterator[Sshd]:
    """Return one that a test may stop."""
    yield servers[0]
    if servers[0].process is None:
        servers[0].start()


@pytest.fixture
def shell(server: Sshd, tmp_path: Path) -> Iterator[SshShell]:
    with open_shell(server.target(), tmp_path / "node-1.log", FakeClock()) as opened:
        yield opened


def refused(target: SshTarget) -> GuestError:
    with pytest.raises(GuestError) as caught:
        close(connect(target))
    return caught.value


def failure(call: Callable[[], object]) -> GuestError:
    with pytest.raises(GuestError) as caught:
        call()
    return caught.value


def told(error: VsmlError) -> str:
    return "\n".join([error.message, error.hint, error.target, *error.details, str(error.__cause__)])


def at_port(target: SshTarget, port: int) -> SshTarget:
    return replace(target, port=port)
