from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.integration import labs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vsphere_ml.lab.state import Lab
    from vsphere_ml.vsphere.gateway import Gateway


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Run one fresh lab for the tests of a module."""
    with labs.running(tmp_path_factory.mktemp("state")) as started:
        yield started


@pytest.fixture(scope="module")
def vcenter(lab: Lab) -> Iterator[Gateway]:
    """Sign in to the lab for the tests of a module."""
    made = labs.gateway(lab)
    yield made
    made.close()


@pytest.fixture
def gateway(lab: Lab) -> Iterator[Gateway]:
    made = labs.gateway(lab)
    yield made
    made.close()
