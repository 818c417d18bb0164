"""The steps' contract, kept by the guest in memory."""

from __future__ import annotations

import pytest

from tests.contract.steps_contract import VERSION, StepsContract
from tests.fakes.guest import FakeGuest, File, Service


@pytest.fixture(scope="module")
def shell() -> FakeGuest:
    made = FakeGuest(available={"numactl": VERSION}, loadable={"nvidia_peermem"})
    made.services["nvidia-gridd"] = Service(active=False, enabled=False)
    made.users["ubuntu"] = 1000
    made.files["/etc/hosts"] = File("127.0.0.1 localhost\n127.0.1.1 node-1\n")
    return made


class TestStepsOnTheFakeGuest(StepsContract):
    pass
