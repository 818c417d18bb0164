"""Asks a running lab vCenter by its control endpoints, which no other vCenter has."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

from vsphere_ml.core.errors import ConfigError, NotPossible

if TYPE_CHECKING:
    from vsphere_ml.lab.state import Lab

TIMEOUT_S = 60.0


def ask(lab: Lab, method: str, path: str, body: Any = None) -> Any:
    """Return the lab's answer to a request; ConfigError `lab.refused` for one that it refuses."""
    token = base64.b64encode(f"{lab.username}:{lab.password()}".encode()).decode()
    request = urllib.request.Request(
        f"https://{lab.address}/lab/{path}",
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Authorization": f"Basic {token}", "Content-Type": "application/json"},
    )
    context = ssl.create_default_context(cafile=lab.ca_file)
    try:
        with urllib.request.urlopen(request, context=context, timeout=TIMEOUT_S) as reply:  # noqa: S310 - as above
            return json.loads(reply.read() or b"null")
    except urllib.error.HTTPError as error:
        raise ConfigError(_reason(error), code="lab.refused", target=path) from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise NotPossible(
            f"the lab vCenter `{lab.name}` does not answer: {error}", code="lab.not-running", target=lab.name
        ) from error


def _reason(error: urllib.error.HTTPError) -> str:
    try:
        return str(json.loads(error.read())["error"])
    except (ValueError, KeyError, TypeError):
        return f"the lab refused it: {error.reason}"
