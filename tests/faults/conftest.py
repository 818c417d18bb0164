"""One lab, and a proxy before it, for all tests of a worker: each leaves the lab as it found it."""

from __future__ import annotations

import os
from datetime import date
from typing import TYPE_CHECKING

import pytest

from tests.faults.calls import EACH, OFFSET, remove_leftovers
from tests.faults.late import HurriedSocket
from tests.integration import labs, proxy
from vsphere_ml.vsphere.changes import lock
from vsphere_ml.vsphere.connection import tls

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.integration.proxy import Proxy
    from vsphere_ml.lab.state import Lab


def pytest_configure() -> None:
    """Let all workers, which are processes of this one, try the same."""
    os.environ.setdefault(OFFSET, str(date.today().toordinal()))  # noqa: DTZ011 - any day that goes on will do


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    tried = f"{EACH}={os.environ[EACH]}" if os.environ.get(EACH) else f"{OFFSET}={os.environ[OFFSET]}"
    terminalreporter.write_line(f"Calls were broken as {tried} says.")


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with labs.running(tmp_path_factory.mktemp("state")) as started:
        yield started


@pytest.fixture(scope="session", autouse=True)
def hurried() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tls, "BoundedSocket", HurriedSocket)
        yield


@pytest.fixture(autouse=True)
def tidy(between: Proxy) -> Iterator[None]:
    """Let a test that was ended in its midst leave nothing to those after it."""
    yield
    remove_leftovers(between)


@pytest.fixture(scope="session")
def between(lab: Lab) -> Iterator[Proxy]:
    with proxy.before(lab) as made:
        yield made


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lock that was made and never signed is waited for ten seconds otherwise."""
    monkeypatch.setattr(lock, "UNSIGNED_S", 1.0)
