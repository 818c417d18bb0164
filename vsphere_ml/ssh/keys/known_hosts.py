"""A cluster's known_hosts file: the keys its guests were pinned to, in OpenSSH's own format.

`ssh -o UserKnownHostsFile=FILE` can use it as it is.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from vsphere_ml.core.errors import GuestError
from vsphere_ml.core.hints import command_line
from vsphere_ml.lazy_dataclass import dataclass
from vsphere_ml.ssh.keys.host_keys import Entry, HostKey, place_of, read_entry

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


@dataclass(frozen=True, slots=True)
class KnownHosts:
    """Pinned host keys in a file. Threads and processes may share the file."""

    path: Path

    def keys(self, host: str, port: int) -> tuple[HostKey, ...]:
        """Return the keys the host is pinned to; none when it is unknown."""
        return tuple(entry.key for entry in self._entries(host, port) if not entry.mark)

    def comments(self, host: str, port: int) -> tuple[str, ...]:
        """Return what was noted when the host's keys were pinned."""
        return tuple(entry.comment for entry in self._entries(host, port) if not entry.mark)

    def revoked(self, host: str, port: int) -> tuple[HostKey, ...]:
        """Return the keys that a person marked `@revoked` for the host."""
        return tuple(entry.key for entry in self._entries(host, port) if entry.mark == "@revoked")

    def pin(self, host: str, port: int, keys: Iterable[HostKey], *, comment: str) -> None:
        """Let these keys be the host's, and no others. The comment says how they became known."""
        place = place_of(host, port)
        note = " ".join(comment.split())
        with self._alone():
            remaining = [line for line in self._lines() if not _pins(line, place)]
            self._replace([*remaining, *(f"{place} {key} {note}".rstrip() for key in keys)])

    def forget(self, host: str, port: int) -> None:
        """Drop the host's keys; revoked ones stay."""
        self.pin(host, port, (), comment="")

    def _entries(self, host: str, port: int) -> list[Entry]:
        place = place_of(host, port)
        # Reading an entry costs far more than this, and a cluster's file has a line for each of its nodes.
        entries = (read_entry(line) for line in self._lines() if place in line.lower() or "|1|" in line)
        return [entry for entry in entries if entry is not None and entry.is_for(place)]

    def _lines(self) -> list[str]:
        try:
            return self.path.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise _unusable_file(self.path, "read", error) from error

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep every other writer out, in this process and in others."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.with_name(self.path.name + ".lock").open("a") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                yield
        except OSError as error:
            raise _unusable_file(self.path, "write", error) from error

    def _replace(self, lines: list[str]) -> None:
        """Write the file whole, so that a reader sees the old one or the new one."""
        handle, name = tempfile.mkstemp(dir=self.path.parent, prefix=f".{self.path.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8", errors="surrogateescape") as file:
                file.writelines(line + "\n" for line in lines)
            Path(name).replace(self.path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


def _pins(line: str, place: str) -> bool:
    entry = read_entry(line)
    return entry is not None and not entry.mark and entry.is_for(place)


def _unusable_file(path: Path, verb: str, error: OSError) -> GuestError:
    return GuestError(
        f"cannot {verb} the pinned host keys in {path}: {error.strerror}",
        code="guest.known-hosts",
        target=str(path),
        hint=command_line("ls", "-ld", path.parent, path),
    )
