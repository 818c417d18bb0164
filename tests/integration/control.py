"""Asks a lab to misbehave, over its control endpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vsphere_ml.lab.control import ask

__all__ = ["ask", "expire", "fail", "forgive", "restart"]

if TYPE_CHECKING:
    from vsphere_ml.lab.state import Lab


def fail(lab: Lab, method: str, fault: str, *, kind: str = "sync", **more: Any) -> None:
    ask(lab, "POST", "faults", {"method": method, "fault": fault, "kind": kind, **more})


def forgive(lab: Lab) -> None:
    ask(lab, "DELETE", "faults")
    ask(lab, "POST", "delays", dict.fromkeys(ask(lab, "GET", "status")["delays"], 0))


def expire(lab: Lab) -> None:
    ask(lab, "POST", "sessions/expire", {})


def restart(lab: Lab, down_ms: int = 100) -> None:
    ask(lab, "POST", "restart", {"down_ms": down_ms})
