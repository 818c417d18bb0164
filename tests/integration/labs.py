"""Labs for tests: a process of its own, its state in a temporary folder, gone at the end."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from vsphere_ml.lab import server
from vsphere_ml.vsphere import session
from vsphere_ml.vsphere.gateway import Gateway

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from vsphere_ml.lab.state import Lab


@contextmanager
def running(state: Path, topology: str = server.DEFAULT_TOPOLOGY) -> Iterator[Lab]:
    """Run a lab; its folder is `state`, so that tests side by side do not meet."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VSML_STATE_DIR", str(state))
        started, _ = server.up(topology)
        try:
            yield started
        finally:
            server.down()


def sign_in(lab: Lab, *, timeout_s: float = 60.0, trace: Path | None = None) -> session.Session:
    """Return a session of its own, TLS verified by the lab's CA."""
    return session.connect(
        lab.address, lab.username, lab.password(), ca_file=lab.ca_file, timeout_s=timeout_s, trace=trace
    )


def gateway(lab: Lab) -> Gateway:
    return Gateway(sign_in(lab))
