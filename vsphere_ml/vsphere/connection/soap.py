"""One SOAP call over HTTPS, and what is made of an answer that is none.

pyvmomi (9.1) reads an answer as it comes: one that is cut off, garbled or of somebody else ends in whatever exception
its parser stumbles into, or in no result at all, which looks like success where a method returns nothing.
"""

from __future__ import annotations

import hashlib
import zlib
from contextlib import contextmanager
from http import HTTPStatus
from http.client import HTTPException
from http.cookies import CookieError, SimpleCookie
from io import BytesIO
from typing import TYPE_CHECKING, Any
from xml.parsers.expat import ExpatError

from pyVmomi import SoapAdapter, VmomiSupport

from vsphere_ml.vsphere.connection.bounds import AnswerTooLargeError, read_all
from vsphere_ml.vsphere.connection.required import fits, source_of
from vsphere_ml.vsphere.connection.tree_reader import LARGEST, read_tree
from vsphere_ml.vsphere.connection.value_reader import ValueReader

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from http.client import HTTPResponse

    from vsphere_ml.vsphere.connection.required import AnswerSource
    from vsphere_ml.vsphere.connection.tls import PinnedConnection

_soap: Any = SoapAdapter
_types: Any = VmomiSupport
_GZIP = zlib.MAX_WBITS + 16
_PIECE = 64 << 10
_SESSION = "vmware_soap_session"
_BULK = {"RetrievePropertiesEx", "ContinueRetrievePropertiesEx"}
# Bytes of a cached answer, as it comes; its values take far more memory.
_LARGEST_CACHED = 1 << 20
_MOST_CACHED = 4


class UnexpectedAnswerError(HTTPException):
    """An answer that cannot be read as one to what was asked."""

    def __init__(self, why: str = "the answer cannot be read") -> None:
        super().__init__(why)


class HttpStatusError(HTTPException):
    """An HTTP status instead of a SOAP answer, as proxies give for a vCenter that is away."""

    def __init__(self, response: HTTPResponse) -> None:
        super().__init__(f"it answers with HTTP {response.status} {response.reason}".rstrip())


class Stub(_soap.SoapStubAdapter):  # type: ignore[misc]
    """pyvmomi's end of the wire, with a reader that believes nothing. `most` bounds an answer's unpacked bytes."""

    def __init__(self, connection: type[PinnedConnection], settings: Mapping[str, Any], most: int, **how: Any) -> None:
        super().__init__(**how)
        self.scheme, self.schemeArgs, self._most = connection, settings, most
        self._caching = False
        self._cached: dict[bytes, tuple[bytes, Any]] = {}  # by the question: the answer's digest and its values

    @contextmanager
    def caching_answers(self) -> Iterator[None]:
        """Give the same values again where the server answers the same question with the same bytes as before.

        For answers of which nobody changes a value. To read those of a cluster's hosts takes most of a look.
        """
        self._caching = True
        try:
            yield
        finally:
            self._caching = False

    def InvokeMethod(self, mo: Any, info: Any, args: Any) -> Any:  # noqa: N802 - pyvmomi's name
        request, cookie = self.SerializeRequest(mo, info, args), self.cookie
        connection = self.GetConnection()
        try:
            connection.request("POST", self.path, request, self._headers(cookie))
            response = connection.getresponse()
            answer = self._answer(request, response, info, source_of(mo, info.wsdlName))
        except BaseException:
            connection.close()
            self.DropConnections()  # the server may be sick, and with it all that was kept open to it
            raise
        if self.cookie == cookie:  # not an answer of a session that was left meanwhile
            self._keep_cookie(response)
        self.ReturnConnection(connection)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def leave_session(self) -> str:
        """Forget the session, so that the next call is in none; return the cookie that it had."""
        cookie = str(self.cookie)
        self.SetSessionId(None)
        return cookie

    def _headers(self, cookie: str) -> dict[str, str]:
        headers = {"SOAPAction": self.versionId, "Content-Type": "text/xml; charset=UTF-8", "User-Agent": "vsml"}
        if cookie:
            headers["Cookie"] = cookie
        if self._acceptCompressedResponses:
            headers["Accept-Encoding"] = "gzip"
        return headers

    def _keep_cookie(self, response: HTTPResponse) -> None:
        try:
            said = SimpleCookie(response.getheader("Set-Cookie") or "").get(_SESSION)
        except CookieError:
            said = None
        if said is not None:
            self.SetSessionId(said.value)

    def _answer(self, request: bytes, response: HTTPResponse, info: Any, source: AnswerSource) -> Any:
        if not self._caching:
            return self._read(response, response, info, source)
        body = read_all(response)
        digest = hashlib.sha256(body).digest()
        before, values = self._cached.get(request, (b"", None))
        if before == digest:
            return values
        answer = self._read(response, BytesIO(body), info, source)
        fits_cache = len(self._cached) < _MOST_CACHED or request in self._cached
        if fits_cache and len(body) <= _LARGEST_CACHED and not isinstance(answer, Exception):
            self._cached[request] = (digest, answer)
        return answer

    def _read(self, response: HTTPResponse, body: HTTPResponse | BytesIO, info: Any, source: AnswerSource) -> Any:
        if response.status not in {HTTPStatus.OK, HTTPStatus.INTERNAL_SERVER_ERROR}:
            raise HttpStatusError(response)
        packed = (response.getheader("Content-Encoding") or "").lower() == "gzip"
        text: Any = _Unpacked(body, self._most) if packed else body
        if info.wsdlName in _BULK:
            beginning = _read_beginning(text)
            answer = read_tree(beginning, info.result, self, source)
            if answer is not None and fits(answer, info.result):
                read_all(response)
                return answer
            text = _Continued(beginning, text)
        reader = _Reader(self, source)
        try:
            answer = reader.Deserialize(text, info.result)
        except (OSError, HTTPException, MemoryError):
            raise
        except ExpatError as error:
            raise UnexpectedAnswerError("the answer is cut off, or no XML") from error
        except Exception as error:  # pyvmomi's reader raises what it stumbles into: KeyError, TypeError, AttributeError
            raise UnexpectedAnswerError from error
        read_all(response)  # to its end, so that the connection can be used again
        if not reader.is_answer or not _answers(answer, info, fault=reader.isFault):
            raise UnexpectedAnswerError("the answer is not that of a vCenter")
        return answer


def _answers(answer: Any, info: Any, *, fault: bool) -> bool:
    """Return whether this is what the method can return."""
    if fault:
        return isinstance(answer, Exception)
    if answer is None:
        return info.result is type(None) or bool(info.resultFlags & _types.F_OPTIONAL)
    return fits(answer, info.result)


class _Reader(_soap.SoapResponseDeserializer):  # type: ignore[misc]
    """Notes whether there was an answer at all: a page of HTML is XML too.

    Entities of a server's own, which no SOAP message may have, are not expanded: they can become any number of values.
    """

    def __init__(self, stub: Stub, source: AnswerSource) -> None:
        super().__init__(stub)
        self.deser = ValueReader(stub, source)
        self.is_answer = False

    def StartElementHandler(self, tag: str, attr: Any) -> None:  # noqa: N802
        self.parser.DefaultHandler = _refuse_entity  # that there is one keeps entities from being expanded
        super().StartElementHandler(tag, attr)
        self.is_answer = self.is_answer or self.isFault or tag.endswith("Response")


def _refuse_entity(markup: str) -> None:
    if markup.startswith("&"):
        raise UnexpectedAnswerError("the answer has entities of its own")


def _read_beginning(text: Any) -> bytes:
    """Return a text, or the beginning of one that is too large for a tree."""
    pieces, size = [], 0
    while size <= LARGEST and (piece := text.read(_PIECE)):
        pieces.append(piece)
        size += len(piece)
    return b"".join(pieces)


class _Continued:
    """A text of which the beginning was read."""

    def __init__(self, beginning: bytes, rest: Any) -> None:
        self._beginning, self._rest = BytesIO(beginning), rest

    def read(self, size: int) -> bytes:
        data: bytes = self._beginning.read(size) or self._rest.read(size)
        return data


class _Unpacked:
    """A gzipped answer, unpacked as it is read, and no further than it may be large."""

    def __init__(self, packed: HTTPResponse | BytesIO, most: int) -> None:
        self._packed, self._most, self._left = packed, most, most
        self._gzip = zlib.decompressobj(_GZIP)

    def read(self, size: int) -> bytes:
        data = self._unpack(self._gzip.unconsumed_tail, size)
        while not data and not self._gzip.eof:
            piece = self._packed.read(_PIECE)
            if not piece:
                raise UnexpectedAnswerError("the answer is cut off")
            data = self._unpack(piece, size)
        self._left -= len(data)
        if self._left < 0:
            raise AnswerTooLargeError(self._most)
        return data

    def _unpack(self, piece: bytes, size: int) -> bytes:
        try:
            return self._gzip.decompress(piece, size)
        except zlib.error as error:
            raise UnexpectedAnswerError from error
