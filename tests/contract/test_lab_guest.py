"""The contract, kept by a lab guest: what the playbooks are tried on behaves as what they are proven on in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.contract.shell_contract import ShellContract
from tests.integration import lone
from tests.integration.guests import needed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.integration.lone import Guest
    from vsphere_ml.ssh.session.shell import SshShell

pytestmark = [pytest.mark.lab, needed]


@pytest.fixture(scope="module")
def guest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guest]:
    with lone.guest(tmp_path_factory.mktemp("contract") / "guests", "10.202.9.11") as running:
        yield running


@pytest.fixture
def shell(guest: Guest) -> Iterator[SshShell]:
    with guest.enter() as opened:
        yield opened


@pytest.fixture
def login() -> str:
    return "ubuntu"


@pytest.fixture
def place() -> str:
    return "/srv/test"


class TestLabGuest(ShellContract):
    pass
