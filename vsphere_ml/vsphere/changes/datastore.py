"""Files of datastores, over vCenter's own HTTPS: `/folder/PATH?dcPath=…&dsName=…`, with the session's cookie and trust.

A file is kept in a folder of its own in the cache, and downloaded anew when its size or time on the datastore differs.
"""

from __future__ import annotations

import hashlib
import json
import re
from contextlib import suppress
from http import HTTPStatus
from http.client import HTTPException
from itertools import takewhile
from operator import attrgetter
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from pyVmomi import vim

from vsphere_ml.core.errors import ConfigError, VSphereError
from vsphere_ml.core.plan.describe import clip
from vsphere_ml.core.units import parse_integer
from vsphere_ml.lazy_dataclass import dataclass
from vsphere_ml.vsphere.connection.soap import HttpStatusError
from vsphere_ml.vsphere.inventory.collect import climb

if TYPE_CHECKING:
    from collections.abc import Callable
    from http.client import HTTPResponse
    from pathlib import Path

    from vsphere_ml.vsphere.connection.session import Session
    from vsphere_ml.vsphere.connection.tls import PinnedConnection

    OnProgress = Callable[[int, int], None]

_PATH = re.compile(r"\[(?P<datastore>[^\]]+)\] ?(?P<path>\S.*)")
_LONGEST = 120  # characters of the server's own words
_CHUNK = 256 << 10  # each is to come within the connection's timeout: 4 KiB/s with the default
_AWAY = frozenset({HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT})


@dataclass(frozen=True, slots=True)
class Seen:
    """What the server says of a file before it sends it."""

    size: int
    modified: str


@dataclass(frozen=True, slots=True)
class Body:
    """A file as it comes, in parts that each have the connection's timeout."""

    connection: PinnedConnection
    response: HTTPResponse

    def read(self) -> bytes:
        self.connection.renew()
        return self.response.read(_CHUNK)


class Files:
    """The files of one data centre's datastores."""

    def __init__(self, session: Session, datacenter: Any, cache: Path) -> None:
        self._session, self._datacenter, self._cache = session, datacenter, cache

    def size(self, file: str) -> int:
        """Return a file's size in bytes; VSphereError `datastore.no-file` or `datastore.refused` when it has none."""
        return self._asked(file, lambda seen, _: seen.size)

    def fetch(self, file: str, notify: OnProgress) -> Path:
        """Return the file on this machine, downloaded when the cache does not have it as it is now."""
        here = self._cache / self._key(file) / PurePosixPath(_split(file)[1]).name
        return self._asked(file, lambda seen, body: here if _is_cached(here, seen) else _save(body, here, seen, notify))

    def _key(self, file: str) -> str:
        return hashlib.sha256(f"{self._session.name}\n{self._place()}\n{file}".encode()).hexdigest()[:16]

    def _asked(self, file: str, take: Callable[[Seen, Body], Any]) -> Any:
        """Ask for the file; nothing of it is read but what `take` reads."""

        def ask() -> Any:
            connection = self._session.file_connection()
            try:
                connection.request("GET", self._url(file), headers={"Cookie": self._session.cookie})
                response = connection.getresponse()
                if response.status == HTTPStatus.UNAUTHORIZED:
                    raise vim.fault.NotAuthenticated
                if response.status in _AWAY:
                    raise HttpStatusError(response)
                return take(_read_response(file, response), Body(connection, response))
            finally:
                connection.close()

        return self._session.read(ask)

    def _url(self, file: str) -> str:
        datastore, path = _split(file)
        return f"/folder/{quote(path)}?{urlencode({'dcPath': self._place(), 'dsName': datastore})}"

    def _place(self) -> str:
        """Return the data centre's inventory path, which folders may be part of."""
        above = takewhile(
            lambda each: each != self._session.content.rootFolder,
            climb(self._datacenter, attrgetter("parent")),
        )
        return "/".join([each.name for each in above][::-1])


def _split(file: str) -> tuple[str, str]:
    found = _PATH.fullmatch(file)
    if found is None:
        raise ConfigError(f"`{file}` is no file of a datastore", code="datastore.path", target=file, hint="[ds] path")
    return found["datastore"], found["path"].strip("/")


def _read_response(file: str, response: HTTPResponse) -> Seen:
    if response.status == HTTPStatus.OK:
        size = parse_integer(response.getheader("Content-Length") or "")
        if size is None:  # without it nobody could distinguish a file from the beginning of one
            raise _refused_error(file, "vCenter does not say how large it is")
        return Seen(size, response.getheader("Last-Modified") or "")
    if response.status == HTTPStatus.NOT_FOUND:
        raise VSphereError(
            f"there is no file {file}",
            code="datastore.no-file",
            target=file,
            hint=f"govc datastore.ls -ds {_split(file)[0]} lists what there is",
        )
    raise _refused_error(file, clip(f"{response.status} {response.reason}", _LONGEST))


def _refused_error(file: str, why: str) -> VSphereError:
    return VSphereError(
        f"vCenter does not hand over {file}: {why}",
        code="datastore.refused",
        target=file,
        hint="see in the vSphere Client whether this account may browse and download from that datastore",
    )


def _is_cached(here: Path, seen: Seen) -> bool:
    with suppress(OSError, ValueError):
        return here.stat().st_size == seen.size and json.loads(_note(here).read_text()) == [seen.size, seen.modified]
    return False


def _save(body: Body, here: Path, seen: Seen, notify: OnProgress) -> Path:
    """Write the file whole or not at all, and note what it was on the datastore."""
    part = here.with_name(f".{here.name}.part")
    try:
        here.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        notify(0, seen.size)
        with part.open("wb") as file:
            for chunk in iter(body.read, b""):
                _write(file, chunk, part)
                notify(file.tell(), seen.size)
            if file.tell() != seen.size:
                raise HTTPException(f"only {file.tell()} of {seen.size} bytes came")
        part.replace(here)
        _note(here).write_text(json.dumps([seen.size, seen.modified]))
    finally:
        part.unlink(missing_ok=True)
    return here


def _write(file: Any, chunk: bytes, part: Path) -> None:
    try:
        file.write(chunk)
    except OSError as error:  # else it would be reported as a connection that broke
        raise ConfigError(
            f"{part} cannot be written: {error.strerror}",
            code="file.unwritable",
            target=str(part),
            hint="VSML_CACHE_DIR=/path/with/free/space",
        ) from error


def _note(here: Path) -> Path:
    return here.with_name(f".{here.name}.json")
