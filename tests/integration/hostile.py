"""A client that keeps to no protocol: it posts to the lab whatever it is told to, with or without a session."""

from __future__ import annotations

import http.client
import re
import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vsphere_ml.lab.state import Lab

_COOKIE = re.compile(r"vmware_soap_session=[^;]+")


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    text: str


@dataclass(slots=True)
class Client:
    """Each request has a connection of its own, so that a dropped one shows at once."""

    lab: Lab
    cookie: str = ""

    def post(self, body: str | bytes, path: str = "/sdk", method: str = "POST") -> Reply:
        host, port = self.lab.address.split(":")
        context = ssl.create_default_context(cafile=self.lab.ca_file)
        connection = http.client.HTTPSConnection(host, int(port), timeout=60, context=context)
        headers = {"Content-Type": "text/xml", "SOAPAction": "urn:vim25/8.0.3.0"}
        if self.cookie:
            headers["Cookie"] = self.cookie
        try:
            connection.request(method, path, body if isinstance(body, bytes) else body.encode(), headers)
            answer = connection.getresponse()
            if found := _COOKIE.search(answer.getheader("Set-Cookie") or ""):
                self.cookie = found[0]
            return Reply(answer.status, answer.read().decode(errors="replace"))
        finally:
            connection.close()

    def call(self, method: str, this: tuple[str, str], inner: str = "") -> Reply:
        kind, name = this
        return self.post(envelope(f'<{method} xmlns="urn:vim25"><_this type="{kind}">{name}</_this>{inner}</{method}>'))

    def sign_in(self) -> Client:
        inner = f"<userName>{self.lab.username}</userName><password>{self.lab.password()}</password>"
        assert self.call("Login", ("SessionManager", "SessionManager"), inner).status == http.client.OK
        return self


def envelope(body: str) -> str:
    return (
        '<?xml version="1.0" encoding="UTF-8"?>'
        '<soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/" '
        'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xmlns:xsd="http://www.w3.org/2001/XMLSchema">'
        f"<soapenv:Body>{body}</soapenv:Body></soapenv:Envelope>"
    )
