"""The files of an image, as far as anybody asks for them: never laid down, only looked up."""

from __future__ import annotations

import fnmatch
import re
from dataclasses import field
from enum import StrEnum
from typing import TYPE_CHECKING

from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

LARGEST_TEXT = 1 << 20  # bytes
_INDEXED = re.compile(r"(etc|home|root|run|var|var/run)|(etc/(ssh/.*|passwd|ssh)|(home|root|run)/.*)|(.*/)?s?bin/[^/]+")
_READ = re.compile(r"etc/passwd|etc/ssh/.*|(home/[^/]+|root)/\.sshd_config|(.*/)?entrypoint\.sh")
_SECRET = re.compile(r".*(_key|id_rsa|id_ecdsa|id_ed25519)")
_MOST_LINKS = 40  # as Linux follows (path_resolution(7))
_HIDES, _HIDES_ALL = ".wh.", ".wh..wh..opq"  # OCI image-spec, layer.md: whiteouts


class FileKind(StrEnum):
    """What a path of an image is."""

    FILE = "file"
    FOLDER = "folder"
    LINK = "link"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEntry:
    """One path of an image. `text` is of small files of settings alone."""

    kind: FileKind
    mode: int = 0o755
    target: str = ""  # of a link
    text: str = ""


def is_indexed(path: str, *, link: bool) -> bool:
    """Return whether anybody may ask for a path; links stand between."""
    return link or _INDEXED.fullmatch(path) is not None


def is_read(path: str, size: int) -> bool:
    """Return whether a file's text is kept; private keys never are."""
    return size <= LARGEST_TEXT and _READ.fullmatch(path) is not None and _SECRET.fullmatch(path) is None


@dataclass(slots=True)
class FileTree:
    """Paths without their first slash, and what they are."""

    entries: dict[str, FileEntry] = field(default_factory=dict)

    def lay(self, layer: Iterable[tuple[str, FileEntry]]) -> None:
        """Put a layer over what is there, and take away what it hides."""
        fresh: dict[str, FileEntry] = {}
        for path, entry in layer:
            folder, _, name = path.rpartition("/")
            if name == _HIDES_ALL:
                self._remove(folder, itself=False)
            elif name.startswith(_HIDES):
                self._remove(f"{folder}/{name.removeprefix(_HIDES)}".lstrip("/"))
            else:
                fresh[path] = entry
        self.entries |= fresh

    def _remove(self, path: str, *, itself: bool = True) -> None:
        below = f"{path}/" if path else ""
        for each in [each for each in self.entries if each.startswith(below) or (itself and each == path)]:
            del self.entries[each]

    def find(self, path: str) -> FileEntry | None:
        """Return what a path leads to, links followed; None where it leads nowhere."""
        real = self.resolve(path)
        return None if real is None else self.entries.get(real)

    def resolve(self, path: str) -> str | None:
        """Return a path without links in it; None where links lead nowhere or round."""
        parts, done, links = [*reversed(path.strip("/").split("/"))], list[str](), 0
        while parts:
            part = parts.pop()
            if part in {"", "."}:
                continue
            if part == "..":
                del done[-1:]
                continue
            entry = self.entries.get("/".join((*done, part)))
            if entry is None or entry.kind is not FileKind.LINK:
                done.append(part)
                continue
            links += 1
            if links > _MOST_LINKS:
                return None
            if entry.target.startswith("/"):
                done = []
            parts += reversed(entry.target.split("/"))
        return "/".join(done)

    def match(self, pattern: str) -> Iterator[str]:
        """Yield the paths that a pattern of a shell names, in order."""
        wanted = pattern.lstrip("/")
        yield from sorted(each for each in self.entries if fnmatch.fnmatchcase(each, wanted))

    def is_program(self, path: str) -> bool:
        """Return whether a path leads to a file that may be run."""
        found = self.find(path)
        return found is not None and found.kind is FileKind.FILE and bool(found.mode & 0o111)
