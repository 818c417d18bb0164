"""What tests do to a lab's ESXi hosts by the vSphere API, without vsml's own code."""

from __future__ import annotations

from typing import Any

from pyVim.task import WaitForTask

from tests.waiting import until


def with_ssh(host: Any) -> None:
    """Start the host's SSH service, unless it runs."""
    service = host.configManager.serviceSystem
    if not next(each for each in service.serviceInfo.service if each.key == "TSM-SSH").running:
        service.StartService(id="TSM-SSH")


def reboot(host: Any) -> None:
    """Reboot the host in maintenance mode and return once it has left that again."""
    before = host.runtime.bootTime
    WaitForTask(host.EnterMaintenanceMode(timeout=0))
    WaitForTask(host.Reboot(force=False))
    until(
        lambda: host.runtime.bootTime != before and host.runtime.connectionState == "connected",
        "the host does not come back",
    )
    WaitForTask(host.ExitMaintenanceMode(timeout=0))
