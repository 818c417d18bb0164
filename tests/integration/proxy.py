"""A TLS proxy before a lab's vCenter: it drops, cuts, holds back, drips, garbles or rewrites chosen answers.

Calls are counted by their SOAP method, other requests by their path, so that a rule can name any call of a run; or by
their kind, which is the method with the types of the objects and the properties that it asks for.
"""

from __future__ import annotations

import http.client
import re
import select
import ssl
import threading
from collections.abc import Callable
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, TypeAlias

from vsphere_ml.vsphere.connection import session
from vsphere_ml.vsphere.connection.tls import Trust
from vsphere_ml.vsphere.gateway import Gateway

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vsphere_ml.lab.state import Lab

VERSIONS = "/sdk/vimServiceVersions.xml"
_METHOD = re.compile(rb"<(?:\w+:)?Body[^>]*>\s*<(?:\w+:)?(\w+)")
_WORDS = re.compile(rb'\btype="(\w+)"|<(?:\w+:)?pathSet>([^<]+)')
_KEPT = ("content-type", "set-cookie", "last-modified")


@dataclass(frozen=True, slots=True)
class Answer:
    """What the lab answered."""

    status: int
    reason: str
    headers: dict[str, str]
    body: bytes


@dataclass(slots=True)
class Exchange:
    """One request on its way, and how to answer it."""

    handler: BaseHTTPRequestHandler
    forward: Callable[[], Answer]

    def send(self, answer: Answer, length: int | None = None) -> None:
        """Send an answer; `length` is what its header says of its body, if that is not true."""
        self.handler.send_response(answer.status, answer.reason)
        for name, value in answer.headers.items():
            self.handler.send_header(name, value)
        self.handler.send_header("Content-Length", str(len(answer.body) if length is None else length))
        self.handler.end_headers()
        self.write(answer.body)

    def write(self, data: bytes) -> None:
        with suppress(OSError):  # nobody reads any more
            self.handler.wfile.write(data)

    def hang_up(self) -> None:
        self.handler.close_connection = True

    def until_left(self) -> None:
        """Wait until the other side hangs up."""
        select.select([self.handler.connection], [], [], 60)
        self.hang_up()


Trouble: TypeAlias = Callable[[Exchange], None]


def lost(exchange: Exchange) -> None:
    """Hang up before the lab has seen the request."""
    exchange.hang_up()


def dropped(exchange: Exchange) -> None:
    """Hang up instead of the answer."""
    exchange.forward()
    exchange.hang_up()


def cut(exchange: Exchange) -> None:
    """Hang up in the middle of the answer."""
    answer = exchange.forward()
    half = answer.body[: len(answer.body) // 2]
    exchange.send(Answer(answer.status, answer.reason, answer.headers, half), len(answer.body))
    exchange.hang_up()


def late(exchange: Exchange) -> None:
    """Hold the answer back for longer than anybody waits."""
    exchange.forward()
    exchange.until_left()


def drip(exchange: Exchange) -> None:
    """Send the answer byte by byte, and never all of it."""
    answer = exchange.forward()
    exchange.send(Answer(answer.status, answer.reason, answer.headers, b""), len(answer.body) + 1_000_000)
    with suppress(OSError):
        while not select.select([exchange.handler.connection], [], [], 0.05)[0]:
            exchange.handler.wfile.write(b" ")
    exchange.hang_up()


def endless(exchange: Exchange) -> None:
    """Never end the answer, as fast as the other side takes it."""
    exchange.send(Answer(200, "OK", {"Content-Type": "text/xml"}, b"<a>"), 1 << 50)
    with suppress(OSError):
        while True:
            exchange.handler.wfile.write(b"a" * (1 << 16))
    exchange.hang_up()


def garbled(exchange: Exchange) -> None:
    """Put a character into the answer that XML does not have."""
    answer = exchange.forward()
    half = len(answer.body) // 2
    body = answer.body[:half] + b"\x00" + answer.body[half:]
    exchange.send(Answer(answer.status, answer.reason, answer.headers, body))


def page(exchange: Exchange) -> None:
    """Answer with a page for people, as captive portals do, and do not pass the request on."""
    exchange.send(Answer(200, "OK", {"Content-Type": "text/html"}, b"<html><body>Please sign in</body></html>"))


def body(text: str) -> Trouble:
    """Answer with this, and do not pass the request on."""
    return lambda exchange: exchange.send(Answer(200, "OK", {"Content-Type": "text/xml"}, text.encode()))


def packed(data: bytes) -> Trouble:
    """Answer with these bytes as gzipped ones."""
    return lambda exchange: exchange.send(Answer(200, "OK", {"Content-Encoding": "gzip"}, data))


def status(code: int, *, passed_on: bool = False) -> Trouble:
    """Answer with an HTTP status, after the lab has acted or before."""

    def answer(exchange: Exchange) -> None:
        if passed_on:
            exchange.forward()
        reason = http.client.responses[code]
        exchange.send(Answer(code, reason, {"Content-Type": "text/html"}, f"<html>{reason}</html>".encode()))

    return answer


def fault(name: str, kind: str = "", text: str = "") -> Trouble:
    """Answer with a fault of vCenter's."""
    body = (
        '<soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/" '
        'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><soapenv:Body><soapenv:Fault>'
        f"<faultcode>ServerFaultCode</faultcode><faultstring>{text}</faultstring>"
        f'<detail><{name}Fault xmlns="urn:vim25" xsi:type="{kind or name}"/></detail>'
        "</soapenv:Fault></soapenv:Body></soapenv:Envelope>"
    )
    return lambda exchange: exchange.send(
        Answer(500, "Internal Server Error", {"Content-Type": "text/xml"}, body.encode())
    )


def rewritten(old: str, new: str) -> Trouble:
    """Put other words into the answer."""
    return edited(lambda body: body.replace(old.encode(), new.encode()))


def edited(edit: Callable[[bytes], bytes]) -> Trouble:
    """Answer with what an edit makes of the lab's answer."""

    def answer(exchange: Exchange) -> None:
        given = exchange.forward()
        exchange.send(Answer(given.status, given.reason, given.headers, edit(given.body)))

    return answer


@dataclass(slots=True)
class Rule:
    """Which answers get into trouble: of a method or a kind, the n-th of a run (all when None), with these words."""

    method: str
    trouble: Trouble
    nth: int | None = 1
    words: str = ""
    met: int = 0
    done: int = 0

    def meets(self, method: str, body: bytes) -> bool:
        if self.method not in ("*", method, name_kind(method, body)) or self.words.encode() not in body:
            return False
        self.met += 1
        return self.nth is None or self.nth == self.met


@dataclass(slots=True)
class Proxy:
    """A proxy that runs. `calls` are the calls it saw, in their order, and `kinds` are theirs."""

    lab: Lab
    port: int = 0
    calls: list[str] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    rules: list[Rule] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def sign_in(self, *, timeout_s: float = 60.0) -> session.Session:
        """Sign in to the lab by way of the proxy."""
        lab = self.lab
        return session.connect(self.address, lab.username, lab.password(), Trust(insecure=True), timeout_s=timeout_s)

    def gateway(self, *, timeout_s: float = 60.0) -> Gateway:
        return Gateway(self.sign_in(timeout_s=timeout_s))

    @contextmanager
    def breaking(self, method: str, trouble: Trouble, nth: int | None = 1, words: str = "") -> Iterator[Rule]:
        """Get answers into trouble for a while."""
        rule = Rule(method, trouble, nth, words)
        with self.breaking_all([rule]):
            yield rule

    @contextmanager
    def breaking_all(self, rules: list[Rule]) -> Iterator[None]:
        """Let all these rules be in force for a while."""
        with self.listening():
            self.rules = rules
            try:
                yield
            finally:
                self.rules = []

    @contextmanager
    def listening(self) -> Iterator[list[str]]:
        """Count the calls from here on."""
        self.calls, self.kinds = [], []
        yield self.calls

    @contextmanager
    def unbroken(self) -> Iterator[None]:
        """Pass everything on for a while, and count nothing of it."""
        remaining, (self.calls, self.kinds, self.rules) = (self.calls, self.kinds, self.rules), ([], [], [])
        try:
            yield
        finally:
            self.calls, self.kinds, self.rules = remaining

    def trouble(self, method: str, body: bytes) -> Trouble | None:
        """Note a call, and return what is to become of it."""
        with self._lock:
            self.calls.append(method)
            self.kinds.append(name_kind(method, body))
            for rule in self.rules:
                if rule.meets(method, body):
                    rule.done += 1
                    return rule.trouble
        return None


def name_kind(method: str, body: bytes) -> str:
    """Return a call's method with what it asks for: the types of objects and the properties, whichever objects."""
    words = {(kind or path).decode() for kind, path in _WORDS.findall(body)}
    return " ".join((method, *sorted(words)))


@contextmanager
def before(lab: Lab) -> Iterator[Proxy]:
    """Run a proxy before a lab's vCenter."""
    made = Proxy(lab)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    # The lab's CA certificate signs itself, so it can stand for a server's.
    context.load_cert_chain(lab.ca_file, lab.ca_file.with_name("ca.key"))
    server = _Server(("127.0.0.1", 0), _handler(made), context)
    made.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler], tls: ssl.SSLContext) -> None:
        super().__init__(address, handler)
        self._tls = tls

    def finish_request(self, request: Any, client_address: Any) -> None:
        # Errors are of a client that hangs up, or does not believe us.
        with suppress(OSError), self._tls.wrap_socket(request, server_side=True) as secure:
            super().finish_request(secure, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass


def _handler(proxy: Proxy) -> type[BaseHTTPRequestHandler]:
    host, port = proxy.lab.address.split(":")
    trust = ssl.create_default_context(cafile=proxy.lab.ca_file)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = -1

        def setup(self) -> None:
            super().setup()
            self.lab = http.client.HTTPSConnection(host, int(port), timeout=300, context=trust)

        def finish(self) -> None:
            self.lab.close()
            super().finish()

        def do_GET(self) -> None:
            self.pass_on(self.path.partition("?")[0], b"")

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            method = _METHOD.search(body)
            self.pass_on(method[1].decode() if method else "-", body)

        def pass_on(self, name: str, body: bytes) -> None:
            fault = proxy.trouble(name, body)
            exchange = Exchange(self, lambda: self.forward(body))
            if fault is None:
                exchange.send(exchange.forward())
            else:
                fault(exchange)
            self.wfile.flush()

        def forward(self, body: bytes) -> Answer:
            remaining = {
                name: self.headers[name] for name in ("Cookie", "SOAPAction", "Content-Type") if name in self.headers
            }
            self.lab.request(self.command, self.path, body or None, remaining)
            answer = self.lab.getresponse()
            headers = {name: value for name, value in answer.getheaders() if name.lower() in _KEPT}
            return Answer(answer.status, answer.reason, headers, answer.read())

        def log_message(self, *_: Any) -> None:
            pass

    return Handler
