"""A client of a Kubernetes API server, for tests: server-side apply with strict fields, and reads."""

from __future__ import annotations

import base64
import json
import ssl
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import yaml

if TYPE_CHECKING:
    from pathlib import Path

FIELDS = "fieldManager=vsml&fieldValidation=Strict"
PLURALS = {"MPIJob": "mpijobs", "Namespace": "namespaces", "ResourceQuota": "resourcequotas"}


class ApiServer:
    """An API server as a kubeconfig names it."""

    def __init__(self, kubeconfig: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        cluster = config["clusters"][0]["cluster"]
        self._server, self._token = cluster["server"], config["users"][0]["user"]["token"]
        trusted = base64.b64decode(cluster["certificate-authority-data"]).decode()
        self._tls = ssl.create_default_context(cadata=trusted)

    def call(self, method: str, path: str, body: object = None) -> tuple[int, dict[str, Any]]:
        """Return the status and the object that answer."""
        headers = {"Authorization": f"Bearer {self._token}"}
        if body is not None:
            headers["Content-Type"] = "application/apply-patch+yaml"
        data = None if body is None else json.dumps(body).encode()
        try:
            with urlopen(
                Request(self._server + path, data, headers, method=method), context=self._tls, timeout=60
            ) as answer:
                return answer.status, json.load(answer)
        except HTTPError as error:
            text = error.read().decode()
            return error.code, json.loads(text) if text.startswith("{") else {"message": text}

    def text(self, path: str) -> str:
        """Return an answer that is no object, such as a log."""
        request = Request(self._server + path, headers={"Authorization": f"Bearer {self._token}"})
        with urlopen(request, context=self._tls, timeout=60) as answer:
            content: bytes = answer.read()
        return content.decode()

    def apply(self, manifest: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Apply one object server-side; what has an unknown or repeated field is refused."""
        return self.call("PATCH", f"{path_of(manifest)}?{FIELDS}", manifest)


def path_of(manifest: dict[str, Any]) -> str:
    version, metadata = manifest["apiVersion"], manifest["metadata"]
    namespace = "" if manifest["kind"] == "Namespace" else f"/namespaces/{metadata.get('namespace', 'default')}"
    group = "/apis" if "/" in version else "/api"
    return f"{group}/{version}{namespace}/{PLURALS[manifest['kind']]}/{metadata['name']}"
