"""The contract, kept by the vCenter in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.contract.vcenter_contract import FILE, Connect, VCenterContract, rig
from tests.fakes.pictures import quad_8u3
from tests.fakes.site import FakeVCenter

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["rig"]


@pytest.fixture
def connect(tmp_path: Path) -> Connect:
    site = FakeVCenter(quad_8u3(), files={FILE: b"a VM's own"}, downloads=tmp_path)
    return lambda: site


class TestFakeSite(VCenterContract):
    pass
