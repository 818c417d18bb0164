"""A lab for other people's clients."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.peers import clients
from vsphere_ml.lab import build, server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from vsphere_ml.lab.state import Lab


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VSML_STATE_DIR", str(tmp_path_factory.mktemp("state")))
        started, _ = server.start_lab()
        try:
            yield started
        finally:
            server.stop_lab()


@pytest.fixture(scope="session")
def govc() -> Path:
    return build.govc()


@pytest.fixture(scope="session")
def ansible() -> Path:
    return clients.ansible()
