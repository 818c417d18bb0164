"""One lab, and a proxy before it, for all tests of a worker: each leaves the lab as it found it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.integration import labs, proxy
from vsphere_ml.vsphere.changes import lock

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.integration.proxy import Proxy
    from vsphere_ml.lab.state import Lab


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with labs.running(tmp_path_factory.mktemp("state")) as started:
        yield started


@pytest.fixture(scope="session")
def between(lab: Lab) -> Iterator[Proxy]:
    with proxy.before(lab) as made:
        yield made


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lock that was made and never signed is waited for ten seconds otherwise."""
    monkeypatch.setattr(lock, "_UNSIGNED_S", 1.0)
