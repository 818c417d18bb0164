"""The contract, kept by the gateway against the lab vCenter over TLS."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.contract.vcenter_contract import Connect, VCenterContract, rig
from tests.integration import labs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vsphere_ml.lab.state import Lab

__all__ = ["rig"]
pytestmark = pytest.mark.lab


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with labs.running(tmp_path_factory.mktemp("state")) as started:
        yield started


@pytest.fixture
def connect(lab: Lab) -> Connect:
    return lambda: labs.gateway(lab)


class TestGatewayOnTheLab(VCenterContract):
    pass
