"""Builds the real vCenter from a spec and the options. The one place that knows every edge."""

from __future__ import annotations

import dataclasses
import getpass
import os
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from vsphere_ml.core.spec import SecretSource, VCenterSpec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vsphere_ml.cli.options import Settings
    from vsphere_ml.cli.terminal import Terminal
    from vsphere_ml.config.secrets import Connection
    from vsphere_ml.core.ports import VCenter


class SystemClock:
    """Time as the system counts it since it started."""

    def now(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


@contextmanager
def vcenter(spec: VCenterSpec, terminal: Terminal) -> Iterator[VCenter]:
    """Yield the signed-in vCenter of a spec, and sign out afterwards."""
    from vsphere_ml.vsphere.gateway import Gateway

    gateway = Gateway(session(connection(spec, terminal), terminal.settings))
    try:
        yield gateway
    finally:
        gateway.close()
