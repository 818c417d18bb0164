"""Asks the vSphere Automation API, which is REST, in a session of its own: `POST /api/session` with the password."""

from __future__ import annotations

from base64 import b64encode
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from vsphere_ml.core import json_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vsphere_ml.vsphere.connection.tls import PinnedConnection

_SESSION = "/api/session"
_MOST_BYTES = 16 << 20


def get(connection: PinnedConnection, username: str, password: str, path: str) -> Any:
    """Return the JSON that a GET is answered with.

    Raises OSError and HTTPException where the server does not answer, ValueError where it refuses or answers no JSON.
    """
    secret = b64encode(f"{username}:{password}".encode()).decode()
    try:
        key = _ask(connection, "POST", _SESSION, {"Authorization": f"Basic {secret}"})
        header = {"vmware-api-session-id": str(key)}
        try:
            return _ask(connection, "GET", path, header)
        finally:
            with suppress(ValueError):  # an answer without a body
                _ask(connection, "DELETE", _SESSION, header)
    finally:
        connection.close()


def _ask(connection: PinnedConnection, method: str, path: str, headers: Mapping[str, str]) -> Any:
    connection.request(method, path, headers=dict(headers))
    reply = connection.getresponse()
    body = reply.read(_MOST_BYTES)
    if reply.status >= 400:  # noqa: PLR2004 - HTTP
        raise ValueError(f"{method} {path} is answered with {reply.status}")
    return json_text.parse(body)
