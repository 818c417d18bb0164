"""The contract, kept by the vCenter in memory."""

from __future__ import annotations

import pytest

from tests.contract.vcenter_contract import Connect, VCenterContract, rig
from tests.fakes.pictures import quad_8u3
from tests.fakes.site import FakeVCenter

__all__ = ["rig"]


@pytest.fixture
def connect() -> Connect:
    site = FakeVCenter(quad_8u3())
    return lambda: site


class TestFakeSite(VCenterContract):
    pass
