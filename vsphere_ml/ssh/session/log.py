"""A guest's log: every command with what it printed, with the time, and without secrets."""

from __future__ import annotations

import codecs
import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from vsphere_ml.core.errors import ConfigError
from vsphere_ml.core.hints import CommandLine, command_line

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from vsphere_ml.core.secret import Secret

LONG_LINE = 8192
SHORTEST_PART = 8  # of a secret of several lines; a shorter line of it gives nothing away and stands in many texts


class Secrets:
    """The secrets a guest was sent, to be kept out of everything that is shown."""

    def __init__(self) -> None:
        self._texts: set[str] = set()

    def add(self, secret: Secret) -> None:
        text = secret.reveal().strip()
        lines = [line.strip() for line in text.splitlines()]
        self._texts |= {part for part in (text, *lines) if part and (part == text or len(part) >= SHORTEST_PART)}

    @property
    def longest(self) -> int:
        return max(map(len, self._texts), default=0)

    def hide(self, text: str) -> str:
        """Return the text with `***` in the place of secrets."""
        for secret in sorted(self._texts, key=len, reverse=True):
            text = text.replace(secret, "***")
        return text


class GuestLog:
    """A file that grows, readable by its owner alone."""

    def __init__(self, path: Path, secrets: Secrets) -> None:
        self.path = path
        self._secrets = secrets

    def add(self, kind: str, text: str) -> None:
        """Add one line: `$` a command, `<` its output, `!` its errors, `=` how it ended."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        lines = self._secrets.hide(text).split("\n")
        self._append(f"{now} {kind} " + "\n    ".join(lines) + "\n")

    def _append(self, line: str) -> None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(line)
        except OSError as error:
            folder = self.path.parent
            raise ConfigError(
                f"cannot write the guest's log {self.path}: {error.strerror}",
                code="file.unwritable",
                target=str(self.path),
                hint=CommandLine(f"{command_line('ls', '-ld', folder)}; {command_line('df', folder)}"),
            ) from error


class LogLines:
    """Turns bytes as they come into lines of text. A line without an end is given in pieces, never within a secret."""

    def __init__(self, secrets: Secrets, take: Callable[[str], None]) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._secrets = secrets
        self._take = take
        self._rest = ""

    def feed(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + self._decoder.decode(data)).split("\n")
        for line in lines:
            self._give(line)
        if len(self._rest) > LONG_LINE + self._secrets.longest:
            self._give_a_piece()

    def end(self) -> None:
        rest, self._rest = self._rest + self._decoder.decode(b"", final=True), ""
        if rest:
            self._give(rest)

    def _give(self, line: str) -> None:
        # A progress bar rewrites its line; its last state is what counts.
        self._take(self._secrets.hide(line.rstrip("\r").rpartition("\r")[2]))

    def _give_a_piece(self) -> None:
        text = self._secrets.hide(self._rest)
        keep = self._secrets.longest
        self._take(text[: len(text) - keep])
        self._rest = text[len(text) - keep :]
