"""The steps' contract, kept on a lab guest: real apt, real files, stand-ins for modules and systemd."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.contract.steps_contract import StepsContract
from tests.integration import lone
from tests.integration.guests import needed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vsphere_ml.ssh.session.shell import SshShell

pytestmark = [pytest.mark.lab, needed]


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshShell]:
    folder = tmp_path_factory.mktemp("steps") / "guests"
    with lone.guest(folder, "10.202.10.11") as guest, guest.enter() as opened:
        opened.run("apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -qy nvidia-linux-grid-535")
        yield opened


class TestStepsOnALabGuest(StepsContract):
    pass
