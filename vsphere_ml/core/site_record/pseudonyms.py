"""Stands pseudonyms in the place of what may not leave a site: the same for the same text, and of the same form.

They are keyed by a secret of the record that is never written, so a guess at a name cannot be tried against a record.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from dataclasses import field
from typing import TYPE_CHECKING

from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

# What is replaced as a whole, in this order: the first that matches at a place wins.
_FORMS = re.compile(
    r"""(?P<time>\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?)
    |(?P<mac>\b(?:[0-9a-f]{2}[:-]){5}[0-9a-f]{2}\b)
    |(?P<uuid>\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b)
    |(?P<bytes>\b(?:[0-9a-f]{2}[ :-]){7,}[0-9a-f]{2}\b)
    |(?P<ipv4>(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w.]))
    |(?P<ipv6>(?<![\w:])(?:[0-9a-f]{0,4}:){2,7}[0-9a-f]{1,4}(?![\w:.]))
    |(?P<number>(?<![\w])\d+(?![\w]))
    |(?P<word>\w+(?:-\w+)*)""",
    re.VERBOSE | re.IGNORECASE,
)
NOON = "2026-01-01T12:00:00Z"
_SHORT = 6  # digits; a longer number, such as a serial one, identifies a machine


@dataclass(slots=True)
class Pseudonyms:
    """Pseudonyms of one record."""

    key: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)

    def replace(self, text: str) -> str:
        """Return a text whose words, numbers and addresses are all pseudonyms."""
        return _FORMS.sub(lambda found: self._form(str(found.lastgroup), found[0]), text)

    def strike_identities(self, text: str, keep: Callable[[str], bool] = lambda _: True) -> str:
        """Return a text without what names one machine: addresses, UUIDs, times, long numbers, words not to keep."""

        def replace_one(found: re.Match[str]) -> str:
            kind = str(found.lastgroup)
            if (kind == "word" and keep(found[0])) or (kind == "number" and len(found[0]) <= _SHORT):
                return found[0]
            return self._form(kind, found[0])

        return _FORMS.sub(replace_one, text)

    def number(self, text: str) -> str:
        """Return another whole number with as many digits and the same sign."""
        digits = text.lstrip("-")
        value = str(int(self._digest(text), 16) % 10 ** len(digits)).rjust(len(digits), "1")
        return text[: len(text) - len(digits)] + (value if value[0] != "0" else "1" + value[1:])

    def _form(self, kind: str, text: str) -> str:
        digest = self._digest(text.lower())
        forms = {
            "time": NOON,
            "mac": ":".join(
                ("02", *(digest[at : at + 2] for at in range(0, 10, 2)))
            ),  # locally administered (IEEE 802)
            "uuid": f"{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:32]}",
            "bytes": re.sub("[0-9a-fA-F]{2}", lambda _: digest[:2], text),
            "ipv4": f"198.18.{int(digest[:2], 16)}.{int(digest[2:4], 16)}",  # of benchmarks (RFC 2544)
            "ipv6": f"2001:db8::{digest[:4]}:{digest[4:8]}",  # of documents (RFC 3849)
            "word": f"x{digest[:8]}",
        }
        return self.number(text) if kind == "number" else forms[kind]

    def _digest(self, text: str) -> str:
        return hmac.new(self.key, text.encode(), hashlib.sha256).hexdigest()
