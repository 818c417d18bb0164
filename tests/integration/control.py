"""Asks a lab to misbehave, over its control endpoints."""

from __future__ import annotations

import base64
import json
import ssl
import urllib.request
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vsphere_ml.lab.state import Lab


def ask(lab: Lab, method: str, path: str, body: Any = None) -> Any:
    """Return the lab's answer to a control request."""
    token = base64.b64encode(f"{lab.username}:{lab.password()}".encode()).decode()
    request = urllib.request.Request(
        f"https://{lab.address}/lab/{path}",
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Authorization": f"Basic {token}", "Content-Type": "application/json"},
    )
    context = ssl.create_default_context(cafile=lab.ca_file)
    with urllib.request.urlopen(request, context=context, timeout=20) as reply:
        return json.loads(reply.read() or b"null")


def fail(lab: Lab, method: str, fault: str, *, kind: str = "sync", **more: Any) -> None:
    ask(lab, "POST", "faults", {"method": method, "fault": fault, "kind": kind, **more})


def forgive(lab: Lab) -> None:
    ask(lab, "DELETE", "faults")
    ask(lab, "POST", "delays", {})


def expire(lab: Lab) -> None:
    ask(lab, "POST", "sessions/expire", {})


def restart(lab: Lab, down_ms: int = 100) -> None:
    ask(lab, "POST", "restart", {"down_ms": down_ms})
