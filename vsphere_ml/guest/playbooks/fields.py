"""What a playbook's fields may hold besides plain TOML values."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from typing import Self

    from vsphere_ml.core.diagnostics import Diagnostic


_SHA256 = re.compile(r"([0-9a-f]{64})?")
_DATASTORE = re.compile(r"\[[^\]]+\] ?\S.*")


class FieldError(ValueError):
    """A field that cannot be meant so: which one, why, and what would be right; or what is wrong in its template."""

    def __init__(self, field: str, message: str, hint: str = "", problems: tuple[Diagnostic, ...] = ()) -> None:
        super().__init__(message)
        self.field = field
        self.message = message
        self.hint = hint
        self.problems = problems


class FileSource(str):
    """Where a file comes from: an `https` or `http` address, `[datastore] path`, or a path on this machine."""

    __slots__ = ()

    @property
    def is_url(self) -> bool:
        return self.startswith(("https://", "http://"))

    @property
    def is_datastore(self) -> bool:
        return bool(_DATASTORE.fullmatch(self))

    @property
    def refusal(self) -> str | None:
        """Why this cannot be used as an address; None for a usable one, and for what is none."""
        if not self.is_url:
            return None
        try:
            has_password = urlsplit(self).password is not None
        except ValueError:  # `https://[mirror/x`: a bracket that is not closed
            return "is not an address such as https://mirror.example.com/file"
        return "must not hold a password, since others on the guest could see it" if has_password else None

    @property
    def name(self) -> str:
        """The file's own name."""
        return Path(urlsplit(self).path).name if self.is_url else Path(self.rpartition("]")[2].strip()).name

    def is_here(self) -> bool:
        """Return whether it is a file of this machine."""
        return Path(self).is_file()


class WheelhouseSource(FileSource):
    """A file of wheels as a `FileSource` is, or a folder of wheels on this machine."""

    __slots__ = ()

    @property
    def wheels(self) -> tuple[Path, ...]:
        """The wheels of a folder; none where it is a file, or not there."""
        return tuple(sorted(Path(self).glob("*.whl")))

    @property
    def is_archive(self) -> bool:
        return self.endswith((".tar", ".tar.gz", ".tgz"))

    def is_here(self) -> bool:
        return super().is_here() if self.is_archive else bool(self.wheels)


class Template(str):
    """The text of a template, read when the playbook was, and the file it was read from."""

    __slots__ = ("file",)

    file: str

    def __new__(cls, text: str, file: str = "") -> Self:
        made = super().__new__(cls, text)
        made.file = file
        return made


def check_address(field: str, address: str) -> None:
    """Refuse an address that is none, or has a password in it: it would stand in process lists and logs."""
    if (why := FileSource(address).refusal) is not None:
        raise FieldError(field, why)


def check_checksum(field: str, source: FileSource, sha256: str) -> None:
    """Refuse what is no checksum, and a file by http without one: anybody on the way could put another in its place."""
    check_pattern(field, sha256, _SHA256, "a SHA-256 of 64 lower-case hexadecimal digits")
    if source.startswith("http://") and not sha256:
        raise FieldError(field, "is needed, since the file comes by http and anybody on the way could change it")


def check_pattern(field: str, text: str, pattern: re.Pattern[str], expected: str) -> None:
    """Refuse what does not look as expected."""
    if not pattern.fullmatch(text):
        raise FieldError(field, f"`{text}` is not {expected}")
