"""Asks the vSphere Automation API, which is REST, in a session of its own: `POST /api/session` with the password."""

from __future__ import annotations

import json
from base64 import b64encode
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from vsphere_ml.core import json_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from vsphere_ml.vsphere.connection.tls import PinnedConnection

SESSION = "/api/session"
_MOST_BYTES = 16 << 20


class RestSession:
    """A signed-in REST API.

    Its methods raise OSError and HTTPException where the server does not answer, ValueError where it refuses or answers
    no JSON.
    """

    def __init__(self, connection: PinnedConnection, key: str) -> None:
        self._connection, self._header = connection, {"vmware-api-session-id": key}

    def get(self, path: str) -> Any:
        """Return the JSON that a GET is answered with."""
        return _ask(self._connection, "GET", path, self._header)

    def post(self, path: str, asked: Any) -> Any:
        """Return the JSON that a POST is answered with."""
        return _ask(self._connection, "POST", path, self._header, json.dumps(asked))

    def delete(self, path: str) -> None:
        with suppress(ValueError):  # an answer without a body
            _ask(self._connection, "DELETE", path, self._header)


@contextmanager
def sign_in(connection: PinnedConnection, username: str, password: str) -> Iterator[RestSession]:
    """Sign in, and out and off at the end. Raises as RestSession's methods."""
    secret = b64encode(f"{username}:{password}".encode()).decode()
    try:
        key = _ask(connection, "POST", SESSION, {"Authorization": f"Basic {secret}"})
        session = RestSession(connection, str(key))
        try:
            yield session
        finally:
            session.delete(SESSION)
    finally:
        connection.close()


def _ask(connection: PinnedConnection, method: str, path: str, headers: Mapping[str, str], body: str = "") -> Any:
    kind = {"Content-Type": "application/json"} if body else {}
    connection.request(method, path, body or None, headers={**headers, **kind})
    reply = connection.getresponse()
    answer = reply.read(_MOST_BYTES)
    if reply.status >= 400:  # noqa: PLR2004 - HTTP
        raise ValueError(f"{method} {path} is answered with {reply.status}")
    return json_text.parse(answer)
